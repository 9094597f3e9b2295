#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "support/program.h"
#include "support/temp_folder.h"

namespace exl3::test {

struct Logits {
    std::vector<int64_t> dims;  ///< (tokens, vocab)
    std::vector<float> values;
};

/// What `exl3 logits` writes for some ids (JSON).
inline Logits logits_of(const std::string& model, const std::string& ids,
                        const std::vector<std::string>& more = {}) {
    const TempFolder folder;
    const std::string out = (folder / "out.safetensors").string();
    std::vector<std::string> args = {"logits", "-m", model, "--ids", "-", "-o", out};
    args.insert(args.end(), more.begin(), more.end());
    const Finished f = exl3(args, ids);
    EXPECT_EQ(f.status, 0) << f.err;
    if (f.status != 0) return {};
    EXPECT_EQ(f.out, "");
    EXPECT_EQ(folder.entries(), 1u) << "temporary files are left";
    const SafetensorsFile file = SafetensorsFile::open(out).value();
    const TensorInfo* info = file.find("logits");
    EXPECT_NE(info, nullptr);
    EXPECT_EQ(info->dtype, DType::f32);
    Logits y{info->dims, std::vector<float>(static_cast<size_t>(info->numel()))};
    std::memcpy(y.values.data(), file.view(*info).data, info->bytes);
    return y;
}

}  // namespace exl3::test
