#include "arch/skeleton.h"

namespace exl3::arch {

// Llama 1 to 3.3 and their many finetunes: the layout all others are compared with.
ModelSpec llama(const ArchInput& in) {
    return llama_like(in);
}

}  // namespace exl3::arch
