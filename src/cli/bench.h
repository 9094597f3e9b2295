#pragma once
#include "cli/options.h"
#include "trellis/codebook.h"

namespace exl3::cli {

struct BenchQuantizeOptions {
    int bits = 4;
    Codebook codebook = kMul1;
    bool json = false;
    DeviceFlags device;
};
/// exl3 bench --quantize: how fast this machine converts.
void bench_quantize(const BenchQuantizeOptions& options);

}  // namespace exl3::cli
