#pragma once
#include <cstddef>
#include <cstdint>

#include "sample/token_mask.h"

namespace exl3 {

/// What a text must look like (a grammar, a schema, a list of choices), asked token by token. One
/// object belongs to one job and is used by one thread at a time; no call may throw.
class TokenConstraint {
public:
    TokenConstraint() = default;
    TokenConstraint(const TokenConstraint&) = delete;
    TokenConstraint& operator=(const TokenConstraint&) = delete;
    virtual ~TokenConstraint() = default;

    /// The tokens that may come next, or null while everything is allowed (before a trigger, say).
    /// End tokens are allowed only where the text may end. Valid until the next call of any member.
    virtual const TokenMask* mask() = 0;
    /// Adds a token to the text. One that mask() forbids makes the constraint fail: from then on
    /// mask() allows end tokens only.
    virtual void accept(int32_t token) = 0;
    /// Takes back the last `tokens` accepted ones, as if they had never come: after a rejected
    /// draft or a banned phrase.
    virtual void rewind(size_t tokens) = 0;
    /// True when the text is complete and nothing may follow but the end.
    virtual bool finished() const = 0;
};

}  // namespace exl3
