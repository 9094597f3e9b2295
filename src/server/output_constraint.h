#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/output_parser.h"
#include "api/request.h"
#include "grammar/constraint.h"
#include "sample/constraint.h"
#include "text/tokenizer.h"

namespace exl3::server {

/// The grammars that requests to one model asked for, compiled; the last ones are kept, with the
/// masks they have worked out. Thread-safe.
class Constraints {
public:
    Constraints(Tokenizer tokenizer, std::vector<int32_t> ends)
        : tokenizer_(std::move(tokenizer)), ends_(std::move(ends)) {}

    /// What a format means. Throws ApiError 400 naming the field for one that is wrong or has
    /// something that is not supported.
    std::shared_ptr<Constraint> compile(const api::OutputFormat& format);
    const Tokenizer& tokenizer() const { return tokenizer_; }

private:
    std::shared_ptr<Constraint> make(const api::OutputFormat& format);
    Tokenizer tokenizer_;
    std::vector<int32_t> ends_;
    std::mutex mutex_;
    std::shared_ptr<const TokenTrie> trie_;  // made when first needed
    struct Entry {
        std::string key;
        std::shared_ptr<Constraint> constraint;
    };
    std::list<Entry> recent_;  // latest first
};

/// Where in an answer the constraint holds.
struct ConstraintScope {
    std::string begins_after;  ///< it waits for this text ("</think>"); empty: it holds at once
    /// Single tokens that may come first instead: after one, the constraint waits for begins_after,
    /// or is off if that is empty or the token is in `exits`.
    std::vector<int32_t> openers, exits;
};

/// The constraint of one job.
std::shared_ptr<TokenConstraint> make_job_constraint(std::shared_ptr<Constraint> constraint,
                                                     const Tokenizer& tokenizer,
                                                     ConstraintScope scope, bool waits);

}  // namespace exl3::server
