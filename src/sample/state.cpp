#include "sample/state.h"

namespace exl3 {

SamplerVocab make_sampler_vocab(std::vector<std::string> pieces,
                                const std::function<bool(int32_t)>& is_special) {
    SamplerVocab vocab;
    vocab.size = static_cast<int>(pieces.size());
    vocab.pieces = std::move(pieces);
    vocab.xtc_protected = TokenMask(vocab.size);
    for (int32_t id = 0; id < vocab.size; ++id)
        if (is_special(id) || vocab.pieces[static_cast<size_t>(id)].find('\n') != std::string::npos)
            vocab.xtc_protected.set(id);
    return vocab;
}

}  // namespace exl3
