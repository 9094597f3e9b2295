#include "grammar/constraint.h"

#include <mutex>

#include "base/error.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/lark.h"
#include "grammar/mask_cache.h"
#include "grammar/regex.h"

namespace exl3 {

struct Constraint::Impl {
    Impl(const Rules& rules, Rules::Rule root, std::shared_ptr<const TokenTrie> t)
        : automaton(rules, root), trie(std::move(t)), cache(automaton, trie) {}
    GrammarAutomaton automaton;
    std::shared_ptr<const TokenTrie> trie;
    std::mutex mutex;  // of the cache
    MaskCache cache;
};

Constraint::Constraint(const Rules& rules, Rules::Rule root, std::shared_ptr<const TokenTrie> trie)
    : impl_(std::make_unique<Impl>(rules, root, std::move(trie))) {}
Constraint::~Constraint() = default;

const TokenTrie& Constraint::trie() const {
    return *impl_->trie;
}

std::shared_ptr<Constraint> Constraint::of(const Rules& rules, Rules::Rule root,
                                           std::shared_ptr<const TokenTrie> trie) {
    return std::shared_ptr<Constraint>(new Constraint(rules, root, std::move(trie)));
}

std::shared_ptr<Constraint> Constraint::regex(std::string_view pattern,
                                              std::shared_ptr<const TokenTrie> trie) {
    Rules rules;
    const auto root = rules.add_rule("root", regex_expr(rules, pattern, {}));
    return of(rules, root, std::move(trie));
}

std::shared_ptr<Constraint> Constraint::gbnf(std::string_view grammar,
                                             std::shared_ptr<const TokenTrie> trie) {
    Rules rules;
    const auto root = parse_gbnf(rules, grammar);
    return of(rules, root, std::move(trie));
}

std::shared_ptr<Constraint> Constraint::lark(std::string_view grammar,
                                             std::shared_ptr<const TokenTrie> trie) {
    Rules rules;
    const auto root = parse_lark(rules, grammar);
    return of(rules, root, std::move(trie));
}

std::shared_ptr<Constraint> Constraint::json_schema(const Json& schema,
                                                    std::shared_ptr<const TokenTrie> trie) {
    Rules rules;
    const auto root = rules.add_rule("root", json_schema_expr(rules, schema));
    return of(rules, root, std::move(trie));
}

std::shared_ptr<Constraint> Constraint::json_object(std::shared_ptr<const TokenTrie> trie) {
    return json_schema(Json{{"type", "object"}}, std::move(trie));
}

std::shared_ptr<Constraint> Constraint::choices(const std::vector<std::string>& texts,
                                                std::shared_ptr<const TokenTrie> trie) {
    if (texts.empty())
        throw Error(Errc::invalid_argument, {}, "choices: found none, needed at least one");
    Rules rules;
    const auto root = rules.add_rule("root", rules.one_of(texts));
    return of(rules, root, std::move(trie));
}

struct ConstraintState::Impl {
    explicit Impl(std::shared_ptr<Constraint> c)
        : constraint(std::move(c)), shared(*constraint->impl_), pool(shared.automaton) {
        history.push_back(pool.begin({shared.automaton.start(), 0}));
    }
    std::shared_ptr<Constraint> constraint;
    Constraint::Impl& shared;
    StackPool pool;
    std::vector<GrammarStacks> history;  // before the first token, then after each
};

ConstraintState::ConstraintState(std::shared_ptr<Constraint> constraint)
    : impl_(std::make_unique<Impl>(std::move(constraint))) {}
ConstraintState::~ConstraintState() = default;
ConstraintState::ConstraintState(ConstraintState&&) noexcept = default;
ConstraintState& ConstraintState::operator=(ConstraintState&&) noexcept = default;

void ConstraintState::mask(TokenMask& out) {
    const TokenTrie& trie = *impl_->shared.trie;
    out.words.assign((static_cast<size_t>(trie.tokens()) + 31) / 32, 0);
    const GrammarStacks& now = impl_->history.back();
    {
        const std::lock_guard lock(impl_->shared.mutex);
        for (const int top : now.tops) impl_->shared.cache.allow(impl_->pool, top, out);
    }
    // A vocabulary that cannot spell what must come next still has to end the answer.
    if (!now.ended && !out.none()) return;
    for (const int32_t id : trie.ends())
        if (id >= 0 && id < trie.tokens()) out.set(id);
}

bool ConstraintState::accept(int32_t token) {
    const TokenTrie& trie = *impl_->shared.trie;
    if (trie.ends_text(token)) {
        if (!may_end()) return false;
        impl_->history.push_back({.tops = {}, .ended = true});
        return true;
    }
    const std::string& bytes = trie.bytes_of(token);
    return !bytes.empty() && accept_text(bytes);
}

bool ConstraintState::accept_text(std::string_view text) {
    GrammarStacks now = impl_->history.back();
    for (const char c : text) {
        now = impl_->pool.after(now, static_cast<uint8_t>(c));
        if (now.dead()) return false;
    }
    impl_->history.push_back(std::move(now));
    return true;
}

bool ConstraintState::may_end() const {
    return impl_->history.back().ended;
}

bool ConstraintState::must_end() const {
    return impl_->history.back().ended && impl_->history.back().tops.empty();
}

void ConstraintState::undo(int n) {
    EXL3_CHECK(n >= 0 && n <= accepted());
    impl_->history.resize(impl_->history.size() - static_cast<size_t>(n));
}

int ConstraintState::accepted() const {
    return static_cast<int>(impl_->history.size()) - 1;
}

}  // namespace exl3
