#include "text/jinja_pprint.h"

#include <algorithm>

#include "text/jinja_dict.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace exl3::jinja {
namespace {

constexpr int kWidth = 80;

int columns(std::string_view text) {
    return static_cast<int>(count_code_points(text));
}

class Printer {
public:
    explicit Printer(Runtime& rt) : rt_(rt) {}
    std::string out;

    // Prints `v` from column `indent` on, leaving `allowance` columns for what follows it.
    void print(const Value& v, int indent, int allowance, int level) {
        const Deeper deeper(rt_);
        rt_.heap.check(out.size());
        const std::string flat = one_line(v);
        if (columns(flat) <= kWidth - indent - allowance) {
            out += flat;
        } else if (v.is(Kind::dict)) {
            print_dict(v, indent, allowance, level + 1);
        } else if (v.is_sequence()) {
            print_items(v, indent, allowance, level + 1);
        } else if (v.is_string() && !v.as<String>().markup) {
            print_text(v.as_text(), indent, allowance, level + 1);
        } else {
            out += flat;
        }
    }

private:
    std::vector<Dict::Entry> sorted(const Value& dict) {
        std::vector<Dict::Entry> entries = dict.as<Dict>().entries();
        std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
            const bool comparable =
                (a.key.is_number() && b.key.is_number()) || a.key.kind() == b.key.kind();
            if (comparable && (a.key.is_number() || a.key.is_string()))
                return less(rt_, a.key, b.key);
            return std::string_view(type_name(a.key)) < type_name(b.key);
        });
        return entries;
    }
    std::string one_line(const Value& v) {
        const Deeper deeper(rt_);
        if (v.is_sequence()) {
            std::string text(1, v.is(Kind::list) ? '[' : '(');
            const auto& items = v.as<Sequence>().items;
            for (size_t i = 0; i < items.size(); ++i) text += (i ? ", " : "") + one_line(items[i]);
            rt_.heap.check(text.size());
            if (v.is(Kind::list)) return text + ']';
            return text + (items.size() == 1 ? ",)" : ")");
        }
        if (!v.is(Kind::dict)) return repr(rt_, v);
        std::string text = "{";
        for (const Dict::Entry& e : sorted(v)) {
            if (text.size() > 1) text += ", ";
            text += one_line(e.key) + ": " + one_line(e.value);
            rt_.heap.check(text.size());
        }
        return text + '}';
    }
    void new_line(int indent) {
        out += '\n';
        out.append(static_cast<size_t>(indent), ' ');
    }
    void print_dict(const Value& v, int indent, int allowance, int level) {
        out += '{';
        const auto entries = sorted(v);
        for (size_t i = 0; i < entries.size(); ++i) {
            const std::string key = one_line(entries[i].key);
            out += key + ": ";
            const bool last = i + 1 == entries.size();
            print(entries[i].value, indent + columns(key) + 3, last ? allowance + 1 : 1, level);
            if (last) break;
            out += ',';
            new_line(indent + 1);
        }
        out += '}';
    }
    void print_items(const Value& v, int indent, int allowance, int level) {
        const auto& items = v.as<Sequence>().items;
        const std::string end = v.is(Kind::list) ? "]" : items.size() == 1 ? ",)" : ")";
        out += v.is(Kind::list) ? '[' : '(';
        for (size_t i = 0; i < items.size(); ++i) {
            const bool last = i + 1 == items.size();
            print(items[i], indent + 1, last ? allowance + static_cast<int>(end.size()) : 1, level);
            if (last) break;
            out += ',';
            new_line(indent + 1);
        }
        out += end;
    }
    // A long string becomes several literals, cut at line ends and after spaces.
    void print_text(std::string_view text, int indent, int allowance, int level) {
        if (level == 1) {
            ++indent;
            ++allowance;
        }
        std::vector<std::string_view> lines;
        for_each_line(text, [&](std::string_view line, std::string_view end) {
            lines.emplace_back(line.data(), line.size() + end.size());
        });
        std::vector<std::string> literals;
        for (size_t i = 0; i < lines.size(); ++i) {
            const bool last = i + 1 == lines.size();
            const std::string whole = repr_of_text(lines[i]);
            if (columns(whole) <= kWidth - indent - (last ? allowance : 0))
                literals.push_back(whole);
            else
                cut_line(lines[i], kWidth - indent, last ? allowance : 0, literals);
        }
        if (level == 1 && literals.size() > 1) out += '(';
        for (size_t i = 0; i < literals.size(); ++i) {
            if (i > 0) new_line(indent);
            out += literals[i];
        }
        if (level == 1 && literals.size() > 1) out += ')';
    }
    void cut_line(std::string_view line, int width, int allowance,
                  std::vector<std::string>& out_to) {
        std::string current;
        for (size_t at = 0; at < line.size();) {
            const size_t start = at;
            bool in_spaces = false;
            for (size_t next = at; next < line.size(); at = next) {
                const bool space = is_space(next_code_point(line, next));
                if (in_spaces && !space) break;
                in_spaces = space;
            }
            rt_.work(64 + current.size());
            const std::string candidate = current + std::string(line.substr(start, at - start));
            const int limit = at == line.size() ? width - allowance : width;
            if (columns(repr_of_text(candidate)) > limit) {
                if (!current.empty()) out_to.push_back(repr_of_text(current));
                current = line.substr(start, at - start);
            } else {
                current = candidate;
            }
        }
        if (!current.empty()) out_to.push_back(repr_of_text(current));
    }

    Runtime& rt_;
};

}  // namespace

std::string pretty(Runtime& rt, const Value& v) {
    Printer printer(rt);
    printer.print(v, 0, 0, 0);
    return std::move(printer.out);
}

}  // namespace exl3::jinja
