#include "trellis/codebook.h"

namespace exl3 {

std::string_view name_of(CodebookKind kind) {
    switch (kind) {
        case CodebookKind::three_inst: return "3inst";
        case CodebookKind::mcg: return "mcg";
        case CodebookKind::mul1: return "mul1";
    }
    return "?";
}

std::optional<Codebook> codebook_named(std::string_view name) {
    for (const Codebook c : {kThreeInst, kMcg, kMul1})
        if (name_of(c.kind) == name) return c;
    return std::nullopt;
}

std::vector<f16> codebook_table(Codebook codebook) {
    std::vector<f16> table(65536);
    for (uint32_t s = 0; s < 65536; ++s)
        table[s] = decode_state(static_cast<uint16_t>(s), codebook);
    return table;
}

}  // namespace exl3
