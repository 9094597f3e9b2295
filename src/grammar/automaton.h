#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "grammar/rules.h"

namespace exl3 {

/// A grammar as a pushdown automaton over bytes. A position is a state and, where the state counts
/// repetitions, how many there were; a stack is the position in the innermost rule above those its
/// callers go on from.
class GrammarAutomaton {
public:
    struct Edge {
        uint8_t first = 0, last = 0;  ///< bytes
        int to = 0;
    };
    struct Call {
        int start = 0;      ///< first state of the rule
        int back = 0;       ///< state of the caller afterwards
        bool tail = false;  ///< nothing is left to do there: the caller's own caller goes on
    };
    /// At a counting state: `body` runs at least min and at most max times (no limit: < 0), then
    /// the rule goes on at `next`.
    struct Counter {
        int body = 0, next = 0;
        int min = 0, max = -1;
    };
    struct State {
        std::vector<Edge> edges;
        std::vector<int> jumps;  ///< states reached without reading anything
        std::vector<Call> calls;
        int counter = -1;   ///< index into counters
        bool ends = false;  ///< the rule may end here
    };

    /// Throws Error{invalid_argument} that names the rule for an undefined or left-recursive one,
    /// for a grammar that no finite text matches, and for one of more than kMostStates states.
    GrammarAutomaton(const Rules& rules, Rules::Rule root);

    static constexpr size_t kMostStates = 400'000;

    int start() const { return start_; }
    const State& state(int s) const { return states_[static_cast<size_t>(s)]; }
    const Counter& counter(const State& s) const {
        return counters_[static_cast<size_t>(s.counter)];
    }
    size_t size() const { return states_.size(); }

private:
    friend class AutomatonBuilder;
    std::vector<State> states_;
    std::vector<Counter> counters_;
    int start_ = 0;
};

}  // namespace exl3
