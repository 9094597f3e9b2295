// The H-weighted error of our quantizer on the matrices of exl3-linear, against the figure recorded
// for the reference converter, as the median of five seeds. It has to be at most 1.02 times that up
// to 5 bits and 1.05 times from 6 on; it is 0.70 to 0.88 times, and held to 0.92.
// All matrices: exl3_golden_tests --gtest_filter='*QuantizeGolden*', 20 s of one core.
#include "quant/quantize_linear.h"

#include <cstring>

#include "cpu/cpu.h"
#include "io/safetensors.h"
#include "ops/ops.h"
#include "support/full_weight.h"
#include "support/golden.h"

namespace exl3::test {
namespace {

namespace fs = std::filesystem;

std::vector<float> floats(const SafetensorsFile& file, const std::string& name) {
    const TensorInfo* info = file.find(name);
    if (!info) throw std::runtime_error(name + " is missing");
    std::vector<float> out(static_cast<size_t>(info->numel()));
    const auto* bytes = static_cast<const uint8_t*>(file.view(*info).data);
    for (size_t i = 0; i < out.size(); ++i) {
        if (info->dtype == DType::f32) {
            std::memcpy(&out[i], bytes + 4 * i, 4);
        } else {
            f16 h;
            std::memcpy(&h, bytes + 2 * i, 2);
            out[i] = to_float(h);
        }
    }
    return out;
}

class QuantizeGolden : public testing::TestWithParam<std::string> {};

TEST_P(QuantizeGolden, ErrorIsNoLargerThanTheReferenceConverters) {
    const fs::path folder = golden_dir() / "exl3-linear";
    const std::string name = GetParam();
    if (!fs::exists(folder / "vectors.safetensors")) GTEST_SKIP() << "no golden data";
    const SafetensorsFile file = SafetensorsFile::open(folder / "vectors.safetensors").value();
    if (!file.find(name + ".H")) GTEST_SKIP() << "not among the golden matrices";
    const std::vector<float> h = floats(file, name + ".H"),
                             source = floats(file, name + ".src_weight");
    const auto& dims = file.find(name + ".src_weight")->dims;
    const int64_t k = dims[0], n = dims[1];
    const double recorded = load_json(folder / "metrics.json").at(name).at("nmse_H").get<double>();

    const auto device = cpu::open();
    const auto stream = device->make_stream();
    const FinalHessian hessian = finalize(Hessian::from_mean(dense(h.data(), DType::f32, {k, k})));
    QuantParams p{.bits = name.back() - '0',
                  .codebook = *codebook_named(name.substr(0, name.find('.')))};
    const std::vector<double> w(source.begin(), source.end());
    const double total = weighted_square(w, &h, k, n);
    const ConstView weight = dense(source.data(), DType::f32, {k, n});
    const auto error_of = [&](const QuantResult& q) {
        std::vector<double> e = full_weight(q, k, n, p.bits, p.codebook);
        for (size_t i = 0; i < e.size(); ++i) e[i] -= w[i];
        return weighted_square(e, &h, k, n) / total;
    };
    std::vector<double> errors;
    for (p.seed = 1; p.seed <= 5; ++p.seed)
        errors.push_back(error_of(quantize_linear(*stream, weight, &hessian, p)));
    std::sort(errors.begin(), errors.end());
    const double ratio = errors[2] / recorded;
    std::printf("%s: %.3f of the recorded error (%.3f to %.3f)\n", name.c_str(), ratio,
                errors.front() / recorded, errors.back() / recorded);
    EXPECT_LE(ratio, 0.92);

    // What conversion uses.
    p.seed = 1;
    p.column_power = 1;
    const double even = error_of(quantize_linear(*stream, weight, &hessian, p)) / recorded;
    std::printf("%s: %.3f of it with equal shares of error\n", name.c_str(), even);
    EXPECT_LE(even, 1.0);

    // One seed of the published algorithm, of which the recorded figure is another draw; from 7
    // bits on draws differ by more than their mean.
    if (p.bits > 6) return;
    p.plain = true;
    const double plain = error_of(quantize_linear(*stream, weight, &hessian, p)) / recorded;
    std::printf("%s: %.3f of it by the published algorithm\n", name.c_str(), plain);
    EXPECT_NEAR(plain, 1, 0.06);
}

std::vector<std::string> matrices() {
    std::vector<std::string> names;
    for (const char* codebook : {"3inst", "mcg", "mul1"})
        for (int bits = 1; bits <= 8; ++bits)
            names.push_back(std::string(codebook) + ".k" + std::to_string(bits));
    return names;
}

INSTANTIATE_TEST_SUITE_P(All, QuantizeGolden, testing::ValuesIn(matrices()), [](const auto& info) {
    std::string name = "cb_" + info.param;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
});

}  // namespace
}  // namespace exl3::test
