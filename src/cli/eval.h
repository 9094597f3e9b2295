#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "gen/eval.h"
#include "io/checkpoint.h"
#include "text/tokenizer.h"

namespace exl3::cli {

void add_eval_ppl(Command& command);
void add_eval_kld(Command& command);
void add_eval_layers(Command& command);

/// A text file tokenized at once, special tokens in it parsed.
std::vector<int32_t> read_text_tokens(const Tokenizer& tokenizer, const std::string& path,
                                      EvalConvention convention);

/// The id that begins a text: config.json's, else the tokenizer's, else none.
std::optional<int32_t> bos_of(const Checkpoint& checkpoint, const Tokenizer& tokenizer);

}  // namespace exl3::cli
