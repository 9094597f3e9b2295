#pragma once
#include <memory>
#include <string>
#include <vector>

#include "grammar/constraint.h"
#include "sample/constraint.h"

namespace exl3 {

/// Where a constraint begins: after the end of a reasoning part, say. Empty: at once.
struct ConstraintStart {
    std::vector<int32_t> tokens;  ///< after any of these
    std::string text;             ///< after these bytes of ordinary tokens
    bool empty() const { return tokens.empty() && text.empty(); }
};

/// A compiled Constraint at work in a job. What comes before its start is free; right after a start
/// that is not empty, up to four tokens of white space may stand before what the grammar wants.
class GrammarConstraint final : public TokenConstraint {
public:
    explicit GrammarConstraint(std::shared_ptr<Constraint> constraint, ConstraintStart start = {});

    const TokenMask* mask() override;
    void accept(int32_t token) override;
    void rewind(size_t tokens) override;
    bool finished() const override;

private:
    enum class Step : uint8_t { free, start, lead, taken, failed };
    bool starts(int32_t token);
    bool may_lead() const;

    std::shared_ptr<Constraint> constraint_;
    ConstraintStart start_;
    ConstraintState state_;
    bool active_, failed_ = false;
    int leads_ = 0;                // tokens of white space since the start
    std::vector<Step> steps_;      // what each accepted token did
    std::string before_;           // bytes before the start
    std::vector<size_t> lengths_;  // of before_, before each free token
    TokenMask mask_;
};

}  // namespace exl3
