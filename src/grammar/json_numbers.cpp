#include "grammar/json_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

namespace exl3 {
namespace {

using Expr = Rules::Expr;

constexpr int kDigits = 16;     // on either side of the point
constexpr double kMost = 9e15;  // whole numbers up to here are exact in a double

// A magnitude as digits: whole part without leading zeros ("0"), fraction without trailing ones.
struct Decimal {
    std::string whole = "0", fraction;
};

Decimal decimal_of(double x) {
    // The shortest digits that read back as x, then the point moved to where the exponent says.
    std::string shortest = fmt::format("{}", x);
    int exponent = 0;
    if (const size_t e = shortest.find('e'); e != std::string::npos) {
        exponent = std::stoi(shortest.substr(e + 1));
        shortest.resize(e);
    }
    const size_t point = std::min(shortest.find('.'), shortest.size());
    std::string digits = shortest.substr(0, point);
    if (point < shortest.size()) digits += shortest.substr(point + 1);
    const int64_t place = static_cast<int64_t>(point) + exponent;
    if (place < 0) digits.insert(0, static_cast<size_t>(-place), '0');
    const auto split = static_cast<size_t>(std::max<int64_t>(place, 0));
    if (digits.size() < split) digits.append(split - digits.size(), '0');
    Decimal d{digits.substr(0, split), digits.substr(split)};
    d.whole.erase(0, std::min(d.whole.find_first_not_of('0'), d.whole.size()));
    if (d.whole.empty()) d.whole = "0";
    while (!d.fraction.empty() && d.fraction.back() == '0') d.fraction.pop_back();
    return d;
}

class Numbers {
public:
    explicit Numbers(Rules& rules) : r_(rules) {}

    Expr digit(char first, char last) {
        return r_.chars({static_cast<char32_t>(first), static_cast<char32_t>(last)});
    }
    Expr digits(int min, int max) { return r_.repeat(digit('0', '9'), min, max); }

    Expr whole(int most = kDigits) {
        return r_.any_of({r_.text("0"), r_.sequence({digit('1', '9'), digits(0, most - 1)})});
    }
    Expr fraction(int most = kDigits) {
        return r_.optional(r_.sequence({r_.text("."), digits(1, most)}));
    }
    Expr exponent() {
        return r_.optional(r_.sequence({r_.chars(CharSet::of(U"eE")),
                                        r_.optional(r_.chars(CharSet::of(U"+-"))), digits(1, 2)}));
    }
    Expr sign() { return r_.optional(r_.text("-")); }

    // Whole numbers a to b of any length, written without leading zeros; a <= b.
    Expr between(const std::string& a, const std::string& b) {
        std::vector<Expr> choices;
        for (size_t n = a.size(); n <= b.size(); ++n) {
            const std::string low = n == a.size() ? a : "1" + std::string(n - 1, '0');
            const std::string high = n == b.size() ? b : std::string(n, '9');
            choices.push_back(same_length(low, high, 0, true, true));
        }
        return r_.any_of(std::move(choices));
    }

    // Fractions (with their point, or none) of at least 0.f.
    Expr fraction_from(const std::string& f, bool excluded) {
        if (f.empty() && !excluded) return fraction();
        return r_.sequence({r_.text("."), tail_from(f, 0, excluded)});
    }
    // Fractions of at most 0.f.
    Expr fraction_to(const std::string& f, bool excluded) {
        if (f.empty() && excluded) return r_.never();
        return r_.any_of({r_.empty(), r_.sequence({r_.text("."), tail_to(f, 0, excluded)})});
    }
    // Fractions from 0.f to 0.g.
    Expr fraction_between(const std::string& f, bool no_f, const std::string& g, bool no_g) {
        std::vector<Expr> choices;
        if (f.empty() && !no_f && !(g.empty() && no_g)) choices.push_back(r_.empty());
        choices.push_back(r_.sequence({r_.text("."), tail_between(f, no_f, g, no_g, 0)}));
        return r_.any_of(std::move(choices));
    }

private:
    Expr rest() { return digits(0, kDigits); }
    Expr zeros(int min) { return r_.repeat(r_.text("0"), min, kDigits); }
    Expr not_zero() { return r_.sequence({zeros(0), digit('1', '9'), rest()}); }
    static char at(const std::string& s, size_t i) { return i < s.size() ? s[i] : '0'; }

    Expr same_length(const std::string& a, const std::string& b, size_t i, bool low, bool high) {
        if (i == a.size()) return r_.empty();
        if (!low && !high) {
            const auto n = static_cast<int>(a.size() - i);
            return digits(n, n);
        }
        const char first = low ? a[i] : '0', last = high ? b[i] : '9';
        if (first == last)
            return r_.sequence({digit(first, last), same_length(a, b, i + 1, low, high)});
        std::vector<Expr> choices;
        char from = first, to = last;
        if (low)
            choices.push_back(
                r_.sequence({digit(from, from), same_length(a, b, i + 1, true, false)})),
                ++from;
        if (high)
            choices.push_back(r_.sequence({digit(to, to), same_length(a, b, i + 1, false, true)})),
                --to;
        if (from <= to)
            choices.push_back(
                r_.sequence({digit(from, to), same_length(a, b, i + 1, false, false)}));
        return r_.any_of(std::move(choices));
    }

    // The digits from place i on, which so far equal f's, with a value of at least f's.
    Expr tail_from(const std::string& f, size_t i, bool excluded) {
        if (i >= f.size()) return excluded ? not_zero() : i == 0 ? digits(1, kDigits) : rest();
        std::vector<Expr> choices = {
            r_.sequence({digit(f[i], f[i]), tail_from(f, i + 1, excluded)})};
        if (f[i] < '9')
            choices.push_back(r_.sequence({digit(static_cast<char>(f[i] + 1), '9'), rest()}));
        return r_.any_of(std::move(choices));
    }

    Expr tail_to(const std::string& f, size_t i, bool excluded) {
        if (i >= f.size()) return excluded ? r_.never() : zeros(i == 0 ? 1 : 0);
        std::vector<Expr> choices = {r_.sequence({digit(f[i], f[i]), tail_to(f, i + 1, excluded)})};
        if (f[i] > '0')
            choices.push_back(r_.sequence({digit('0', static_cast<char>(f[i] - 1)), rest()}));
        if (i > 0) choices.push_back(r_.empty());
        return r_.any_of(std::move(choices));
    }

    Expr tail_between(const std::string& f, bool no_f, const std::string& g, bool no_g, size_t i) {
        if (i >= f.size() && i >= g.size())
            return no_f || no_g ? r_.never() : zeros(i == 0 ? 1 : 0);
        std::vector<Expr> choices;
        const char a = at(f, i), b = at(g, i);
        if (a == b) {
            choices.push_back(r_.sequence({digit(a, a), tail_between(f, no_f, g, no_g, i + 1)}));
        } else {
            choices.push_back(r_.sequence({digit(a, a), tail_from(f, i + 1, no_f)}));
            choices.push_back(r_.sequence({digit(b, b), tail_to(g, i + 1, no_g)}));
            if (b - a > 1)
                choices.push_back(r_.sequence(
                    {digit(static_cast<char>(a + 1), static_cast<char>(b - 1)), rest()}));
        }
        // Ending here means zeros from here on.
        if (i > 0 && i >= f.size() && !no_f) choices.push_back(r_.empty());
        return r_.any_of(std::move(choices));
    }

    Rules& r_;
};

// Magnitudes between two limits, neither negative. No upper limit: up to 16 digits.
Expr magnitudes(Rules& rules, const NumberLimit& low, const std::optional<NumberLimit>& high) {
    Numbers n(rules);
    const Decimal a = decimal_of(low.value);
    const auto successor = [](const std::string& whole) {
        return decimal_of(std::stod(whole) + 1).whole;
    };
    if (!high) {
        const std::string most(std::max<size_t>(kDigits, a.whole.size() + 1), '9');
        return rules.any_of(
            {rules.sequence({rules.text(a.whole), n.fraction_from(a.fraction, low.excluded)}),
             rules.sequence({n.between(successor(a.whole), most), n.fraction()})});
    }
    const Decimal b = decimal_of(high->value);
    if (a.whole == b.whole)
        return rules.sequence(
            {rules.text(a.whole),
             n.fraction_between(a.fraction, low.excluded, b.fraction, high->excluded)});
    std::vector<Expr> choices = {
        rules.sequence({rules.text(a.whole), n.fraction_from(a.fraction, low.excluded)}),
        rules.sequence({rules.text(b.whole), n.fraction_to(b.fraction, high->excluded)})};
    const double first = std::stod(a.whole) + 1, last = std::stod(b.whole) - 1;
    if (first <= last)
        choices.push_back(rules.sequence(
            {n.between(decimal_of(first).whole, decimal_of(last).whole), n.fraction()}));
    return rules.any_of(std::move(choices));
}

}  // namespace

Rules::Expr json_number(Rules& rules, const NumberLimits& limits) {
    Numbers n(rules);
    if (!limits.any()) return rules.sequence({n.sign(), n.whole(), n.fraction(), n.exponent()});
    std::vector<Expr> choices;
    const auto negated = [](const NumberLimit& l) { return NumberLimit{-l.value, l.excluded}; };
    const NumberLimit zero;
    if (!limits.high || limits.high->value > 0 ||
        (limits.high->value == 0 && !limits.high->excluded)) {
        const NumberLimit low = limits.low && limits.low->value >= 0 ? *limits.low : zero;
        if (!limits.high || low.value <= limits.high->value)
            choices.push_back(magnitudes(rules, low, limits.high));
    }
    if (!limits.low || limits.low->value < 0) {
        // Below zero only: zero itself stands above, without a sign.
        const NumberLimit nearest =
            limits.high && limits.high->value < 0 ? negated(*limits.high) : NumberLimit{0, true};
        std::optional<NumberLimit> farthest;
        if (limits.low) farthest = negated(*limits.low);
        if (!farthest || nearest.value <= farthest->value)
            choices.push_back(
                rules.sequence({rules.text("-"), magnitudes(rules, nearest, farthest)}));
    }
    return rules.any_of(std::move(choices));
}

Rules::Expr json_integer(Rules& rules, const NumberLimits& limits) {
    Numbers n(rules);
    if (!limits.any()) return rules.sequence({n.sign(), n.whole()});
    double low = limits.low ? std::ceil(limits.low->value) : -kMost;
    double high = limits.high ? std::floor(limits.high->value) : kMost;
    if (limits.low && limits.low->excluded && low == limits.low->value) ++low;
    if (limits.high && limits.high->excluded && high == limits.high->value) --high;
    // A limit beyond what doubles count exactly leaves one side of it only.
    if (!limits.low && high < low) low = 2 * high;
    if (!limits.high && low > high) high = 2 * low;
    const auto digits = [](double x) { return decimal_of(x).whole; };
    std::vector<Expr> choices;
    if (high >= 0 && low <= high)
        choices.push_back(n.between(digits(std::max(low, 0.0)), digits(high)));
    if (low < 0 && low <= high)
        choices.push_back(rules.sequence(
            {rules.text("-"), n.between(digits(std::max(-high, 1.0)), digits(-low))}));
    return rules.any_of(std::move(choices));
}

Rules::Expr json_multiple(Rules& rules, int divisor) {
    Numbers n(rules);
    // One rule per remainder of the digits so far.
    std::vector<Rules::Rule> remainders;
    for (int i = 0; i < divisor; ++i)
        remainders.push_back(rules.add_rule(fmt::format("remainder {} of {}", i, divisor)));
    const auto step = [&](int remainder, char digit) {
        const int next = (remainder * 10 + (digit - '0')) % divisor;
        return rules.sequence(
            {n.digit(digit, digit), rules.call(remainders[static_cast<size_t>(next)])});
    };
    for (int i = 0; i < divisor; ++i) {
        std::vector<Expr> choices;
        if (i == 0) choices.push_back(rules.empty());
        for (char d = '0'; d <= '9'; ++d) choices.push_back(step(i, d));
        rules.define(remainders[static_cast<size_t>(i)], rules.any_of(std::move(choices)));
    }
    std::vector<Expr> choices;
    for (char d = '1'; d <= '9'; ++d) choices.push_back(step(0, d));
    return rules.any_of(
        {rules.text("0"), rules.sequence({n.sign(), rules.any_of(std::move(choices))})});
}

Rules::Expr json_decimal(Rules& rules, int places) {
    Numbers n(rules);
    return rules.sequence({n.sign(), n.whole(), n.fraction(places)});
}

}  // namespace exl3
