#pragma once
#include <cstdint>
#include <optional>

#include "grammar/rules.h"

namespace exl3 {

struct NumberLimit {
    double value = 0;
    bool excluded = false;  ///< the value itself is not allowed
};
struct NumberLimits {
    std::optional<NumberLimit> low, high;
    bool any() const { return low || high; }
};

/// JSON numbers of at most 16 digits before and after the point, so that every reader takes them.
Rules::Expr json_number(Rules& rules, const NumberLimits& limits);
/// The same for whole numbers, written without point and exponent; without limits up to 16 digits.
Rules::Expr json_integer(Rules& rules, const NumberLimits& limits);
/// Whole numbers that `divisor` (at least 1) divides.
Rules::Expr json_multiple(Rules& rules, int divisor);
/// Numbers with at most `places` decimal places.
Rules::Expr json_decimal(Rules& rules, int places);

}  // namespace exl3
