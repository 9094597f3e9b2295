#include "grammar/automaton.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_set>

#include "base/error.h"

namespace exl3 {
namespace {

// Repetitions of up to so many states in all are written out; beyond, they are counted.
constexpr size_t kUnrolled = 96;

[[noreturn]] void refuse(const std::string& what) {
    throw Error(Errc::invalid_argument, {}, "grammar: " + what);
}

}  // namespace

class AutomatonBuilder {
public:
    AutomatonBuilder(const Rules& rules, GrammarAutomaton& out) : rules_(rules), out_(out) {}

    void build(Rules::Rule root) {
        out_.start_ = start_of(root);
        while (!pending_.empty()) {
            const Pending p = pending_.back();
            pending_.pop_back();
            const int end = add();
            state(end).ends = true;
            put(p.body, p.start, end);
        }
        drop_dead_ends();
        refuse_left_recursion();
        mark_tail_calls();
    }

private:
    struct Pending {
        Rules::Expr body;
        int start;
    };

    GrammarAutomaton::State& state(int s) { return out_.states_[static_cast<size_t>(s)]; }

    int add() {
        if (out_.states_.size() >= GrammarAutomaton::kMostStates)
            refuse(fmt::format("needs more than {} states", GrammarAutomaton::kMostStates));
        out_.states_.emplace_back();
        return static_cast<int>(out_.states_.size()) - 1;
    }

    int start_of(Rules::Rule rule) {
        const auto [it, fresh] = starts_.try_emplace(rule, 0);
        if (!fresh) return it->second;
        const auto& definition = rules_.rules()[static_cast<size_t>(rule)];
        if (definition.body < 0) refuse("rule '" + definition.name + "' is not defined");
        const int start = add();
        it->second = start;
        names_[start] = definition.name;
        pending_.push_back({definition.body, start});
        return start;
    }

    // A rule without a name, for the body of a counted repetition.
    int start_of_body(Rules::Expr body) {
        const auto [it, fresh] = bodies_.try_emplace(body, 0);
        if (fresh) {
            it->second = add();
            names_[it->second] = "(repetition)";
            pending_.push_back({body, it->second});
        }
        return it->second;
    }

    // States that an expression takes, roughly.
    size_t size_of(Rules::Expr e) const {
        const Rules::Node& n = rules_.node(e);
        switch (n.kind) {
            case Rules::Kind::text: return n.bytes.size() + 1;
            case Rules::Kind::one_of: {
                size_t total = 1;
                for (const auto& t : n.texts) total += t.size();
                return total;
            }
            case Rules::Kind::chars:
                return n.set.ranges().empty() || n.set.ranges().back().last < 0x80 ? 1 : 4;
            case Rules::Kind::call: return 1;
            case Rules::Kind::repeat: {
                const auto times = static_cast<size_t>(std::max({n.min, n.max, 1}));
                return std::min(times * size_of(n.parts[0]), kUnrolled) + 1;
            }
            default: {
                size_t total = 1;
                for (const Rules::Expr p : n.parts) total += size_of(p);
                return total;
            }
        }
    }

    // Everything that `e` matches leads from one state to another.
    void put(Rules::Expr e, int from, int to) {
        const Rules::Node& n = rules_.node(e);
        switch (n.kind) {
            case Rules::Kind::text: return put_text(n.bytes, from, to);
            case Rules::Kind::one_of: return put_texts(n.texts, from, to);
            case Rules::Kind::chars: return put_chars(n.set, from, to);
            case Rules::Kind::sequence: return put_sequence(n.parts, from, to);
            case Rules::Kind::any_of:
                for (const Rules::Expr choice : n.parts) put(choice, from, to);
                return;
            case Rules::Kind::repeat: return put_repeat(n, from, to);
            case Rules::Kind::call: {
                const int start = start_of(n.rule);
                state(from).calls.push_back({start, to});
                return;
            }
        }
    }

    void put_byte(uint8_t first, uint8_t last, int from, int to) {
        state(from).edges.push_back({first, last, to});
    }

    void put_text(const std::string& bytes, int from, int to) {
        if (bytes.empty()) {
            state(from).jumps.push_back(to);
            return;
        }
        for (size_t i = 0; i < bytes.size(); ++i) {
            const int next = i + 1 == bytes.size() ? to : add();
            const auto b = static_cast<uint8_t>(bytes[i]);
            put_byte(b, b, from, next);
            from = next;
        }
    }

    // Texts share the states of common beginnings, so a long list stays deterministic.
    void put_texts(const std::vector<std::string>& texts, int from, int to) {
        std::map<std::pair<int, uint8_t>, int> next;
        for (const std::string& text : texts) {
            int at = from;
            for (const char c : text) {
                const auto b = static_cast<uint8_t>(c);
                const auto [it, fresh] = next.try_emplace({at, b}, 0);
                if (fresh) {
                    it->second = add();
                    put_byte(b, b, at, it->second);
                }
                at = it->second;
            }
            state(at).jumps.push_back(to);
        }
    }

    void put_chars(const CharSet& set, int from, int to) {
        // Sequences that begin alike share their first states.
        std::map<std::vector<uint8_t>, int> shared;
        for (const ByteSequence& s : utf8_sequences(set)) {
            int at = from;
            std::vector<uint8_t> path;
            for (int i = 0; i < s.count; ++i) {
                if (i + 1 == s.count) {
                    put_byte(s.first[i], s.last[i], at, to);
                    break;
                }
                path.push_back(s.first[i]);
                path.push_back(s.last[i]);
                const auto [it, fresh] = shared.try_emplace(path, 0);
                if (fresh) {
                    it->second = add();
                    put_byte(s.first[i], s.last[i], at, it->second);
                }
                at = it->second;
            }
        }
    }

    void put_sequence(const std::vector<Rules::Expr>& parts, int from, int to) {
        if (parts.empty()) state(from).jumps.push_back(to);
        for (size_t i = 0; i < parts.size(); ++i) {
            const int next = i + 1 == parts.size() ? to : add();
            put(parts[i], from, next);
            from = next;
        }
    }

    void put_repeat(const Rules::Node& n, int from, int to) {
        const Rules::Expr body = n.parts[0];
        const bool limited = n.max >= 0;
        const auto times = static_cast<size_t>(limited ? n.max : n.min);
        if (times > 1 && times * size_of(body) > kUnrolled) {
            const int at = add(), start = start_of_body(body);
            state(from).jumps.push_back(at);
            state(at).counter = static_cast<int>(out_.counters_.size());
            out_.counters_.push_back({start, to, n.min, n.max});
            return;
        }
        for (int i = 0; i < n.min; ++i) {
            const int next = add();
            put(body, from, next);
            from = next;
        }
        if (!limited) {
            // A state of its own: what jumps to `from` elsewhere must not enter the loop's end.
            const int loop = add(), again = add();
            state(from).jumps.push_back(loop);
            put(body, loop, again);
            state(again).jumps.push_back(loop);
            state(loop).jumps.push_back(to);
            return;
        }
        for (int i = n.min; i < n.max; ++i) {
            const int next = add();
            state(from).jumps.push_back(to);
            put(body, from, next);
            from = next;
        }
        state(from).jumps.push_back(to);
    }

    // Forgets edges to states from which no rule can end, so that a text which is matched so far
    // can always be completed.
    void drop_dead_ends() {
        const size_t n = out_.states_.size();
        std::vector<char> alive(n, 0);
        const auto lives = [&](int s) { return alive[static_cast<size_t>(s)] != 0; };
        const auto of_counter = [&](const GrammarAutomaton::Counter& c) {
            return lives(c.next) && (c.min == 0 || lives(c.body));
        };
        for (bool changed = true; changed;) {
            changed = false;
            for (size_t i = n; i-- > 0;) {
                const auto& s = out_.states_[i];
                if (alive[i]) continue;
                bool ok = s.ends || (s.counter >= 0 && of_counter(out_.counter(s)));
                for (const auto& e : s.edges) ok = ok || lives(e.to);
                for (const int j : s.jumps) ok = ok || lives(j);
                for (const auto& c : s.calls) ok = ok || (lives(c.start) && lives(c.back));
                alive[i] = ok;
                changed = changed || ok;
            }
        }
        if (!lives(out_.start_)) refuse("matches no text that ends");
        for (auto& s : out_.states_) {
            std::erase_if(s.edges, [&](const auto& e) { return !lives(e.to); });
            std::erase_if(s.jumps, [&](int j) { return !lives(j); });
            std::erase_if(s.calls,
                          [&](const auto& c) { return !lives(c.start) || !lives(c.back); });
            if (s.counter < 0) continue;
            auto& c = out_.counters_[static_cast<size_t>(s.counter)];
            if (!of_counter(c))
                s.counter = -1;
            else if (!lives(c.body))
                c.max = 0;
        }
    }

    // States that reach the end of their rule without reading a byte.
    std::vector<char> empty_states() const {
        std::vector<char> empty(out_.states_.size(), 0);
        const auto is = [&](int s) { return empty[static_cast<size_t>(s)] != 0; };
        for (bool changed = true; changed;) {
            changed = false;
            for (size_t i = empty.size(); i-- > 0;) {
                const auto& s = out_.states_[i];
                if (empty[i]) continue;
                bool ok = s.ends;
                for (const int j : s.jumps) ok = ok || is(j);
                for (const auto& c : s.calls) ok = ok || (is(c.start) && is(c.back));
                if (s.counter >= 0) {
                    const auto& c = out_.counter(s);
                    ok = ok || (is(c.next) && (c.min == 0 || is(c.body)));
                }
                empty[i] = ok;
                changed = changed || ok;
            }
        }
        return empty;
    }

    // A rule that calls itself before it reads anything would grow the stack for ever.
    void refuse_left_recursion() {
        const std::vector<char> empty = empty_states();
        std::map<int, std::vector<int>> calls;  // rule start -> rule starts
        for (const auto& [start, name] : names_) {
            std::unordered_set<int> seen;
            std::vector<int> open = {start};
            std::vector<int>& out = calls[start];
            while (!open.empty()) {
                const int at = open.back();
                open.pop_back();
                if (!seen.insert(at).second) continue;
                const auto& s = state(at);
                open.insert(open.end(), s.jumps.begin(), s.jumps.end());
                for (const auto& c : s.calls) {
                    out.push_back(c.start);
                    if (empty[static_cast<size_t>(c.start)]) open.push_back(c.back);
                }
                if (s.counter < 0) continue;
                const auto& c = out_.counter(s);
                if (c.max != 0) out.push_back(c.body);
                if (c.min == 0 || empty[static_cast<size_t>(c.body)]) open.push_back(c.next);
            }
        }
        std::map<int, int> mark;  // 1: on the path, 2: done
        const std::function<void(int)> visit = [&](int start) {
            mark[start] = 1;
            for (const int next : calls[start]) {
                if (mark[next] == 1) refuse("rule '" + names_[next] + "' is left-recursive");
                if (mark[next] == 0) visit(next);
            }
            mark[start] = 2;
        };
        for (const auto& [start, name] : names_)
            if (mark[start] == 0) visit(start);
    }

    void mark_tail_calls() {
        for (auto& s : out_.states_)
            for (auto& c : s.calls) {
                const auto& back = state(c.back);
                c.tail = back.ends && back.edges.empty() && back.jumps.empty() &&
                         back.calls.empty() && back.counter < 0;
            }
    }

    const Rules& rules_;
    GrammarAutomaton& out_;
    std::map<Rules::Rule, int> starts_;
    std::map<Rules::Expr, int> bodies_;
    std::map<int, std::string> names_;  // of rules, by their first state
    std::vector<Pending> pending_;
};

GrammarAutomaton::GrammarAutomaton(const Rules& rules, Rules::Rule root) {
    AutomatonBuilder(rules, *this).build(root);
}

}  // namespace exl3
