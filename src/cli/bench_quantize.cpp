// exl3 bench --quantize
#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/open_model.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "quant/quantize_speed.h"

namespace exl3::cli {

void bench_quantize(const BenchQuantizeOptions& o) {
    const Runtime runtime = open_runtime(o.device);
    const QuantizeSpeed v = measure_quantize_speed(*runtime.stream, o.bits, o.codebook, check_stop);
    if (o.json) {
        print_json({{"device", runtime.device->name()},
                    {"bits", o.bits},
                    {"codebook", std::string(name_of(o.codebook.kind))},
                    {"encode_weights_per_second", v.encode},
                    {"encode_mse", v.encode_mse},
                    {"matrix_weights_per_second", v.matrix},
                    {"matrix_rows", v.k},
                    {"matrix_columns", v.n},
                    {"matrix_proxy_err", v.proxy_err},
                    {"hessian_rows_per_second", v.hessian_rows}});
        return;
    }
    print(
        fmt::format("trellis encoding   {:>8.3f} M weights/s ({} bits, {}; squared error {:.5f})\n",
                    v.encode / 1e6, o.bits, name_of(o.codebook.kind), v.encode_mse));
    print(fmt::format("whole matrix       {:>8.3f} M weights/s ({} x {}, proxy error {:.5f})\n",
                      v.matrix / 1e6, v.k, v.n, v.proxy_err));
    print(fmt::format("measuring inputs   {:>8.0f} rows/s (width {})\n", v.hessian_rows, v.k));
}

}  // namespace exl3::cli
