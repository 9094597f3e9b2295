#include "trellis/hadamard.h"

#include <vector>

#include "core/device.h"
#include "ops/gemm.h"

namespace exl3::ref {

void hadamard(Stream&, const HadamardArgs& a) {
    std::vector<double> run(kHadamard);
    const int64_t lines = a.x.shape[a.columns ? 1 : 0], length = a.x.shape[a.columns ? 0 : 1];
    for (int64_t line = 0; line < lines; ++line)
        for (int64_t begin = 0; begin < length; begin += kHadamard) {
            const auto at = [&](int64_t i) -> float& {
                return a.columns ? a.x.row<float>(begin + i)[line]
                                 : a.x.row<float>(line)[begin + i];
            };
            for (int i = 0; i < kHadamard; ++i) run[static_cast<size_t>(i)] = at(i);
            hadamard128(run.data());
            for (int i = 0; i < kHadamard; ++i)
                at(i) = static_cast<float>(run[static_cast<size_t>(i)]);
        }
}

}  // namespace exl3::ref
