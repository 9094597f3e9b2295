#pragma once
#include <memory>

#include "text/json_reader.h"
#include "text/token_model.h"

namespace exl3::text {

/// The "model" of tokenizer.json, at which `reader` stands. Read in one pass without a tree: it is
/// most of a file of up to 35 MB.
/// @param raw_bytes  pieces will come as bytes where the model can take them
std::unique_ptr<TokenModel> load_model(JsonReader& reader, bool raw_bytes);

}  // namespace exl3::text
