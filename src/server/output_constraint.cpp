#include "server/output_constraint.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/fields.h"

namespace exl3::server {
namespace {

using Kind = api::OutputFormat::Kind;

constexpr size_t kKept = 32;
constexpr size_t kLargestFormat = size_t{256} << 10;  // bytes of a schema or grammar

/// Lets everything pass until its scope begins, then what the grammar allows.
class JobConstraint : public TokenConstraint {
public:
    JobConstraint(std::shared_ptr<Constraint> constraint, Tokenizer tokenizer,
                  ConstraintScope scope, bool waits)
        : spaces_(constraint->trie().spaces()),
          state_(std::move(constraint)),
          tokenizer_(std::move(tokenizer)),
          scope_(std::move(scope)),
          first_(waits ? Phase::waiting : Phase::active) {}

    const TokenMask* mask() override {
        if (phase() != Phase::active) return nullptr;
        state_.mask(mask_);
        if (steps_.empty())
            for (const auto* list : {&scope_.openers, &scope_.exits})
                for (const int32_t id : *list) mask_.set(id);
        if (may_lead())
            for (const int32_t id : spaces_) mask_.set(id);
        return &mask_;
    }

    void accept(int32_t token) override {
        Step step{phase(), false, 0};
        if (step.phase == Phase::active) {
            if (steps_.empty() && has(scope_.exits, token))
                step.phase = Phase::off;
            else if (steps_.empty() && has(scope_.openers, token))
                step.phase = scope_.begins_after.empty() ? Phase::off : Phase::waiting;
            else if (!may_lead() || !has(spaces_, token))
                step.in_grammar = state_.accept(token);
        } else if (step.phase == Phase::waiting) {
            const std::string bytes = tokenizer_.is_special(token) ? tokenizer_.token_of(token)
                                                                   : tokenizer_.bytes_of(token);
            step.bytes = bytes.size();
            text_ += bytes;
            if (text_.ends_with(scope_.begins_after)) step.phase = Phase::active;
        }
        steps_.push_back(step);
    }

    void rewind(size_t tokens) override {
        int undone = 0;
        for (; tokens > 0 && !steps_.empty(); --tokens) {
            undone += steps_.back().in_grammar;
            text_.resize(text_.size() - steps_.back().bytes);
            steps_.pop_back();
        }
        state_.undo(undone);
    }

    bool finished() const override { return phase() == Phase::active && state_.must_end(); }

private:
    enum class Phase : uint8_t { waiting, active, off };
    struct Step {
        Phase phase;  ///< after the token
        bool in_grammar = false;
        size_t bytes = 0;  ///< that it added to text_
    };
    // After reasoning, models put some white space before the answer.
    bool may_lead() const {
        constexpr size_t kMost = 4;
        size_t leads = 0;
        for (size_t i = steps_.size(); i > 0 && steps_[i - 1].phase == Phase::active; --i) {
            if (steps_[i - 1].in_grammar) return false;
            // The token that ended the wait is the first of this phase.
            if (i > 1 ? steps_[i - 2].phase == Phase::waiting : first_ == Phase::waiting)
                return leads < kMost;
            ++leads;
        }
        return false;
    }
    Phase phase() const { return steps_.empty() ? first_ : steps_.back().phase; }
    static bool has(const std::vector<int32_t>& ids, int32_t id) {
        return std::find(ids.begin(), ids.end(), id) != ids.end();
    }

    const std::vector<int32_t>& spaces_;  // tokens of white space alone; of the constraint's trie
    ConstraintState state_;
    Tokenizer tokenizer_;
    ConstraintScope scope_;
    Phase first_;
    std::vector<Step> steps_;
    std::string text_;  // before the scope
    TokenMask mask_;
};

std::vector<std::string> choice_texts(const api::OutputFormat& format) {
    std::vector<std::string> texts;
    for (const Json& item : format.value) {
        if (!item.is_string()) throw api::bad_field(format.param, "needed a list of strings");
        texts.push_back(item.get<std::string>());
    }
    return texts;
}

}  // namespace

std::shared_ptr<Constraint> Constraints::make(const api::OutputFormat& format) {
    switch (format.kind) {
        case Kind::json_object: return Constraint::json_object(trie_);
        case Kind::json_schema: return Constraint::json_schema(format.value, trie_);
        case Kind::regex: return Constraint::regex(format.value.get<std::string>(), trie_);
        case Kind::choice: return Constraint::choices(choice_texts(format), trie_);
        case Kind::grammar: {
            const auto text = format.value.get<std::string>();
            // The two notations are told apart by how they define a rule.
            return text.find("::=") != std::string::npos ? Constraint::gbnf(text, trie_)
                                                         : Constraint::lark(text, trie_);
        }
        case Kind::structural_tag: break;
    }
    throw api::bad_field(format.param,
                         "structural tags are not supported, needed a schema, "
                         "a regular expression, a grammar or choices");
}

std::shared_ptr<Constraint> Constraints::compile(const api::OutputFormat& format) {
    const std::string text = api::to_text(format.value);
    if (text.size() > kLargestFormat)
        throw api::bad_field(format.param, fmt::format("found {} bytes, needed at most {}",
                                                       text.size(), kLargestFormat));
    const std::string key = fmt::format("{} {}", static_cast<int>(format.kind), text);
    const std::lock_guard lock(mutex_);
    for (auto it = recent_.begin(); it != recent_.end(); ++it)
        if (it->key == key) {
            recent_.splice(recent_.begin(), recent_, it);
            return it->constraint;
        }
    if (!trie_) trie_ = TokenTrie::of(tokenizer_, ends_);
    try {
        recent_.push_front({key, make(format)});
    } catch (const Error& e) {
        throw api::bad_field(format.param, e.what());
    }
    if (recent_.size() > kKept) recent_.pop_back();
    return recent_.front().constraint;
}

std::shared_ptr<TokenConstraint> make_job_constraint(std::shared_ptr<Constraint> constraint,
                                                     const Tokenizer& tokenizer,
                                                     ConstraintScope scope, bool waits) {
    return std::make_shared<JobConstraint>(std::move(constraint), tokenizer, std::move(scope),
                                           waits);
}

}  // namespace exl3::server
