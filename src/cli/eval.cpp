// Measures the quality of a model on a text: eval ppl, eval kld, eval layers.
#include "cli/eval.h"

#include <fmt/format.h>

#include "base/log.h"
#include "cli/input.h"

namespace exl3::cli {

std::vector<int32_t> read_text_tokens(const Tokenizer& tokenizer, const std::string& path,
                                      EvalConvention convention) {
    // The gguf convention starts as its tool does: with BOS where the tokenizer adds it.
    return tokenizer.encode(read_input(path), {.add_special = convention == EvalConvention::gguf});
}

std::optional<int32_t> bos_of(const Checkpoint& checkpoint, const Tokenizer& tokenizer) {
    for (const char* key : {"bos_token_id", "text_config.bos_token_id"})
        if (checkpoint.config().has(key)) return checkpoint.config().get<int>(key);
    return tokenizer.bos_id();
}

void add_eval(Command& command) {
    add_eval_ppl(command.add("ppl", "Perplexity of a text"));
    add_eval_kld(command.add("kld", "KL divergence from a reference model, with perplexities"));
    add_eval_layers(command.add("layers", "Error of the hidden states after every layer"));
}

}  // namespace exl3::cli
