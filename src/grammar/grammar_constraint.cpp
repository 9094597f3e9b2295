#include "grammar/grammar_constraint.h"

#include "base/error.h"

namespace exl3 {
namespace {

constexpr int kMostLeads = 4;

bool is_space(const std::string& bytes) {
    return !bytes.empty() && bytes.find_first_not_of(" \n\r\t") == std::string::npos;
}

}  // namespace

GrammarConstraint::GrammarConstraint(std::shared_ptr<Constraint> constraint, ConstraintStart start)
    : constraint_(std::move(constraint)),
      start_(std::move(start)),
      state_(constraint_),
      active_(start_.empty()) {}

bool GrammarConstraint::may_lead() const {
    return !start_.empty() && state_.accepted() == 0 && leads_ < kMostLeads;
}

const TokenMask* GrammarConstraint::mask() {
    if (!active_) return nullptr;
    const TokenTrie& trie = constraint_->trie();
    if (failed_) {
        mask_ = TokenMask(trie.tokens());
        for (const int32_t id : trie.ends())
            if (id >= 0 && id < trie.tokens()) mask_.set(id);
        return &mask_;
    }
    state_.mask(mask_);
    if (may_lead())
        for (const int32_t id : trie.spaces()) mask_.set(id);
    return &mask_;
}

bool GrammarConstraint::starts(int32_t token) {
    for (const int32_t id : start_.tokens)
        if (id == token) return true;
    lengths_.push_back(before_.size());
    before_ += constraint_->trie().bytes_of(token);
    return !start_.text.empty() && before_.ends_with(start_.text);
}

void GrammarConstraint::accept(int32_t token) {
    if (!active_) {
        const size_t texts = lengths_.size();
        active_ = starts(token);
        if (lengths_.size() == texts) lengths_.push_back(before_.size());
        steps_.push_back(active_ ? Step::start : Step::free);
    } else if (!failed_ && state_.accept(token)) {
        steps_.push_back(Step::taken);
    } else if (!failed_ && may_lead() && is_space(constraint_->trie().bytes_of(token))) {
        ++leads_;
        steps_.push_back(Step::lead);
    } else {
        failed_ = true;
        steps_.push_back(Step::failed);
    }
}

void GrammarConstraint::rewind(size_t tokens) {
    EXL3_CHECK(tokens <= steps_.size());
    for (; tokens > 0; --tokens) {
        const Step step = steps_.back();
        steps_.pop_back();
        if (step == Step::taken) state_.undo(1);
        if (step == Step::lead) --leads_;
        if (step == Step::start) active_ = false;
        if (step == Step::start || step == Step::free) {
            before_.resize(lengths_.back());
            lengths_.pop_back();
        }
        failed_ = !steps_.empty() && steps_.back() == Step::failed;
    }
}

bool GrammarConstraint::finished() const {
    return failed_ || (active_ && state_.must_end());
}

}  // namespace exl3
