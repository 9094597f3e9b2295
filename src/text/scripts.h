#pragma once
#include <string>

namespace exl3::text {

/// An expression whose matches are the pieces of the "UnicodeScripts" pre-tokenizer: runs of one
/// script and the spaces behind them. Kana count as Han; leading spaces match nothing.
std::string script_run_pattern();

}  // namespace exl3::text
