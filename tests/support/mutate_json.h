#pragma once
#include <string>
#include <vector>

#include "base/random.h"
#include "io/json.h"

namespace exl3::test {

/// Every value inside `root`, itself included, with its depth left out of account.
inline void collect_values(Json& value, std::vector<Json*>& out) {
    out.push_back(&value);
    if (value.is_structured())
        for (Json& inner : value) collect_values(inner, out);
}

/// A value of the kind that breaks readers: edges of ranges, other types, empty things.
inline Json strange_value(Random& random) {
    static const char* const kValues[] = {"0",
                                          "1",
                                          "-1",
                                          "2",
                                          "3",
                                          "7",
                                          "127",
                                          "128",
                                          "256",
                                          "65536",
                                          "2147483647",
                                          "-2147483648",
                                          "4294967296",
                                          "9007199254740993",
                                          "0.5",
                                          "-0.0",
                                          "1e-30",
                                          "1e30",
                                          "1e308",
                                          "64.0",
                                          "null",
                                          "true",
                                          "false",
                                          "\"\"",
                                          "\"x\"",
                                          "\"silu\"",
                                          "\"yarn\"",
                                          "\"full_attention\"",
                                          "[]",
                                          "[0]",
                                          "[1,2]",
                                          "[[]]",
                                          "{}",
                                          "{\"a\":1}",
                                          "\"default\"",
                                          "\"llama3\"",
                                          "\"longrope\"",
                                          "\"linear\"",
                                          "\"dynamic\"",
                                          "\"gelu\""};
    return Json::parse(kValues[random.below(std::size(kValues))]);
}

/// Makes one change to a document that keeps it JSON: another value, a value from elsewhere in it,
/// a number a little off, a member or element removed or added.
inline void mutate_json(Json& root, Random& random) {
    std::vector<Json*> values;
    collect_values(root, values);
    Json& value = *values[random.below(values.size())];
    switch (random.below(6)) {
        case 0:
            if (value.is_number_integer()) {
                value = value.get<int64_t>() / 2 + static_cast<int64_t>(random.below(5)) - 2;
                break;
            }
            [[fallthrough]];
        case 1: value = strange_value(random); break;
        case 2: value = Json(*values[random.below(values.size())]); break;
        case 3:
            if (value.is_structured() && !value.empty())
                value.erase(
                    std::next(value.begin(), static_cast<int64_t>(random.below(value.size()))));
            break;
        case 4:
            if (value.is_array()) value.push_back(strange_value(random));
            if (value.is_object()) value["rope_scaling"] = strange_value(random);
            break;
        default:
            if (value.is_string()) value = value.get<std::string>() + "x";
    }
}

}  // namespace exl3::test

#ifdef EXL3_LIBFUZZER
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

/// libFuzzer calls this instead of its own mutator: half of the time the input stays JSON.
extern "C" inline size_t mutate_json_or_bytes(uint8_t* data, size_t size, size_t max_size,
                                              unsigned seed) {
    exl3::Random random(seed);
    if (random.coin()) return LLVMFuzzerMutate(data, size, max_size);
    auto json = exl3::parse_json({reinterpret_cast<const char*>(data), size}, "");
    if (!json) return LLVMFuzzerMutate(data, size, max_size);
    for (uint64_t n = 1 + random.below(3); n > 0; --n) exl3::test::mutate_json(*json, random);
    const std::string text = json->dump();
    if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
    std::copy(text.begin(), text.end(), data);
    return text.size();
}
#define EXL3_FUZZ_JSON_MUTATOR                                                             \
    extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, \
                                              unsigned seed) {                             \
        return mutate_json_or_bytes(data, size, max_size, seed);                           \
    }
#else
#define EXL3_FUZZ_JSON_MUTATOR
#endif
