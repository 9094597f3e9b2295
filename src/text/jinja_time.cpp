#include "text/jinja_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace exl3 {
namespace {

bool is_leap(int year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int days_in_month(int year, int month) {
    constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && is_leap(year) ? 29 : kDays[month - 1];
}

// Reads `width` digits at the front of `text`.
bool take_number(std::string_view& text, size_t width, int& out) {
    if (text.size() < width) return false;
    out = 0;
    for (const char c : text.substr(0, width)) {
        if (c < '0' || c > '9') return false;
        out = out * 10 + (c - '0');
    }
    text.remove_prefix(width);
    return true;
}

bool take_char(std::string_view& text, char c) {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
}

bool take_date(std::string_view& s, CivilTime& t) {
    return take_number(s, 4, t.year) && take_char(s, '-') && take_number(s, 2, t.month) &&
           take_char(s, '-') && take_number(s, 2, t.day) && t.year >= 1 && t.month >= 1 &&
           t.month <= 12 && t.day >= 1 && t.day <= days_in_month(t.year, t.month);
}

bool take_clock(std::string_view& s, CivilTime& t) {
    if (!take_number(s, 2, t.hour) || !take_char(s, ':') || !take_number(s, 2, t.minute))
        return false;
    t.second = 0;
    if (take_char(s, ':') && !take_number(s, 2, t.second)) return false;
    return t.hour < 24 && t.minute < 60 && t.second < 60;
}

}  // namespace

Result<CivilTime> CivilTime::parse(std::string_view text) {
    CivilTime t{.hour = 12, .minute = 34, .second = 56};
    std::string_view rest = text;
    bool good = take_date(rest, t);
    if (good && !rest.empty())
        good =
            (take_char(rest, ' ') || take_char(rest, 'T')) && take_clock(rest, t) && rest.empty();
    if (good) return t;
    return Error(Errc::invalid_argument, {},
                 fmt::format("date: found '{}', needed YYYY-MM-DD or YYYY-MM-DD HH:MM:SS",
                             text.substr(0, 40)));
}

CivilTime CivilTime::local_now() {
    const auto now = std::chrono::system_clock::now();
    const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(
        now - std::chrono::system_clock::from_time_t(seconds));
    std::tm tm{};
    localtime_r(&seconds, &tm);
    return {.year = tm.tm_year + 1900,
            .month = tm.tm_mon + 1,
            .day = tm.tm_mday,
            .hour = tm.tm_hour,
            .minute = tm.tm_min,
            .second = std::min(tm.tm_sec, 59),
            .microsecond = std::clamp(static_cast<int>(micros.count()), 0, 999'999)};
}

namespace jinja {
namespace {

constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};
constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                   "May",       "June",     "July",     "August",
                                   "September", "October",  "November", "December"};

int day_of_year(const CivilTime& t) {  // from 1
    int n = t.day;
    for (int m = 1; m < t.month; ++m) n += days_in_month(t.year, m);
    return n;
}

int weekday(const CivilTime& t) {  // 0 is Sunday
    const int y = t.year - 1;
    return (y * 365 + y / 4 - y / 100 + y / 400 + day_of_year(t)) % 7;
}

int weeks_in_iso_year(int year) {
    const int jan1 = weekday({.year = year});
    return jan1 == 4 || (jan1 == 3 && is_leap(year)) ? 53 : 52;
}

struct IsoWeek {
    int year = 0, week = 0;
};

IsoWeek iso_week(const CivilTime& t) {
    const int monday_based = (weekday(t) + 6) % 7 + 1;
    const int week = (day_of_year(t) - monday_based + 10) / 7;
    if (week < 1) return {t.year - 1, weeks_in_iso_year(t.year - 1)};
    if (week > weeks_in_iso_year(t.year)) return {t.year + 1, 1};
    return {t.year, week};
}

// What stands between % and the letter, in the C library: a flag and a width.
struct Field {
    char flag = 0;
    int width = -1;
};

std::string number(int value, int width, char padding, const Field& f) {
    if (f.flag == '-') return std::to_string(value);
    if (f.flag == '_') padding = ' ';
    if (f.flag == '0') padding = '0';
    const auto size = static_cast<size_t>(f.width >= 0 ? f.width : width);
    std::string digits = std::to_string(value);
    if (digits.size() < size) digits.insert(0, size - digits.size(), padding);
    return digits;
}

std::string word(std::string text, const Field& f) {
    if (f.flag == '^')
        std::transform(text.begin(), text.end(), text.begin(),
                       [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (f.width > static_cast<int>(text.size()))
        text.insert(0, static_cast<size_t>(f.width) - text.size(), f.flag == '0' ? '0' : ' ');
    return text;
}

std::string directive(char letter, const CivilTime& t, const Field& f) {
    const int hour12 = t.hour % 12 == 0 ? 12 : t.hour % 12, day = weekday(t);
    switch (letter) {
        case 'Y': return number(t.year, 1, '0', f);
        case 'C': return number(t.year / 100, 2, '0', f);
        case 'y': return number(t.year % 100, 2, '0', f);
        case 'm': return number(t.month, 2, '0', f);
        case 'd': return number(t.day, 2, '0', f);
        case 'e': return number(t.day, 2, ' ', f);
        case 'H': return number(t.hour, 2, '0', f);
        case 'k': return number(t.hour, 2, ' ', f);
        case 'I': return number(hour12, 2, '0', f);
        case 'l': return number(hour12, 2, ' ', f);
        case 'M': return number(t.minute, 2, '0', f);
        case 'S': return number(t.second, 2, '0', f);
        case 'f': return fmt::format("{:06}", t.microsecond);
        case 'j': return number(day_of_year(t), 3, '0', f);
        case 'u': return number(day == 0 ? 7 : day, 1, '0', f);
        case 'w': return number(day, 1, '0', f);
        case 'U': return number((day_of_year(t) + 6 - day) / 7, 2, '0', f);
        case 'W': return number((day_of_year(t) + 6 - (day + 6) % 7) / 7, 2, '0', f);
        case 'V': return number(iso_week(t).week, 2, '0', f);
        case 'G': return number(iso_week(t).year, 1, '0', f);
        case 'g': return number(iso_week(t).year % 100, 2, '0', f);
        case 'a': return word(std::string(kDays[day]).substr(0, 3), f);
        case 'A': return word(kDays[day], f);
        case 'b':
        case 'h': return word(std::string(kMonths[t.month - 1]).substr(0, 3), f);
        case 'B': return word(kMonths[t.month - 1], f);
        case 'p': return word(t.hour < 12 ? "AM" : "PM", f);
        case 'P': return word(t.hour < 12 ? "am" : "pm", f);
        case 'c': return word(format_time("%a %b %e %H:%M:%S %Y", t), f);
        case 'x':
        case 'D': return word(format_time("%m/%d/%y", t), f);
        case 'X':
        case 'T': return word(format_time("%H:%M:%S", t), f);
        case 'F': return word(format_time("%Y-%m-%d", t), f);
        case 'R': return word(format_time("%H:%M", t), f);
        case 'r': return word(format_time("%I:%M:%S %p", t), f);
        case 'n': return "\n";
        case 't': return "\t";
        case '%': return "%";
        case 'z':
        case 'Z': return "";
        default: return std::string("%") + letter;
    }
}

}  // namespace

std::string format_time(std::string_view format, const CivilTime& t) {
    std::string out;
    for (size_t i = 0; i < format.size(); ++i) {
        if (format[i] != '%' || i + 1 == format.size()) {
            out += format[i];
            continue;
        }
        Field f;
        size_t at = i + 1;
        while (at < format.size() &&
               std::string_view("-_0^#").find(format[at]) != std::string_view::npos)
            f.flag = format[at++];
        for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at)
            f.width = std::min(100, std::max(f.width, 0) * 10 + (format[at] - '0'));
        if (at == format.size()) {
            out += format.substr(i);
            break;
        }
        out += directive(format[at], t, f);
        i = at;
    }
    return out;
}

}  // namespace jinja
}  // namespace exl3
