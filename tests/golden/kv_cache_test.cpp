// Against groups quantized by the reference implementation.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "io/safetensors.h"
#include "ops/kv_group.h"
#include "support/devices.h"
#include "support/golden.h"

namespace exl3::test {
namespace {

struct Plane {
    std::vector<f16> x;
    std::vector<uint32_t> words;
    std::vector<f16> scales, out;
};

// The elements of a tensor; files align them to nothing.
template <typename T>
std::vector<T> values(const SafetensorsFile& file, const std::string& name) {
    const ConstView v = file.view(*file.find(name));
    std::vector<T> out(static_cast<size_t>(v.shape.numel()));
    std::memcpy(out.data(), v.data, out.size() * sizeof(T));
    return out;
}

// What our encoder makes of x, and our decoder of the reference's words.
void expect_same(const Plane& p, int bits, const std::string& name) {
    int other_codes = 0;
    double worst = 0;
    for (size_t g = 0; g < p.scales.size(); ++g) {
        float x[kKvGroup], y[kKvGroup];
        for (int i = 0; i < kKvGroup; ++i) x[i] = to_float(p.x[g * kKvGroup + i]);
        uint32_t words[8];
        f16 scale;
        kv_encode(x, bits, words, &scale);
        EXPECT_EQ(scale.bits, p.scales[g].bits) << name << " group " << g;
        const uint32_t* wanted = p.words.data() + g * bits;
        uint8_t ours[kKvGroup], theirs[kKvGroup];
        kv_unpack(words, bits, ours);
        kv_unpack(wanted, bits, theirs);
        for (int i = 0; i < kKvGroup; ++i) other_codes += ours[i] != theirs[i];
        f16 rotated[kKvGroup];
        kv_decode_rotated(wanted, p.scales[g], bits, rotated);
        for (int i = 0; i < kKvGroup; ++i) y[i] = to_float(rotated[i]);
        kv_rotate(y);
        for (int i = 0; i < kKvGroup; ++i)
            worst = std::max(worst, std::fabs(double{y[i]} - to_float(p.out[g * kKvGroup + i])));
    }
    EXPECT_EQ(other_codes, 0) << name;
    EXPECT_LT(worst, 4e-3) << name;  // a few f16 steps of the largest values
}

}  // namespace

TEST(KvCacheGolden, CodesScalesAndValues) {
    const auto path = golden_dir() / "kv-cache" / "vectors.safetensors";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no golden data at " << path;
    const SafetensorsFile file = SafetensorsFile::open(path).value();
    for (int bits = 2; bits <= 8; ++bits)
        for (const int dim : {64, 128})
            for (const std::string plane : {"k", "v"}) {
                const std::string name = fmt::format("b{}.d{}.{}", bits, dim, plane);
                expect_same({values<f16>(file, name), values<uint32_t>(file, name + "q"),
                             values<f16>(file, name + "s"), values<f16>(file, name + "_out")},
                            bits, name);
            }
}

}  // namespace exl3::test
