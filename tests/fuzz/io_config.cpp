// Any bytes as config.json, read in every way there is: values or an Error, nothing else.
#include "io/config.h"
#include "support/mutate_json.h"

namespace exl3 {
namespace {

template <typename F>
void attempt(F&& f) {
    try {
        f();
    } catch (const Error& e) {
        EXL3_CHECK(e.where().file == "f.json");
    }
}

void read(const HfConfig& c, std::string_view path, int depth) {
    attempt([&] { c.get<bool>(path); });
    attempt([&] { c.get<int>(path, 1); });
    attempt([&] { c.get<int64_t>(path); });
    attempt([&] { c.get<float>(path); });
    attempt([&] { c.get<double>(path, 1); });
    attempt([&] { c.get<std::string>(path); });
    attempt([&] { c.find<int>({"no", path}); });
    attempt([&] { c.list<bool>(path); });
    attempt([&] { c.list<int>(path); });
    attempt([&] { c.list<double>(path); });
    attempt([&] { c.list<std::string>(path); });
    attempt([&] {
        if (const auto child = c.child(path); child && depth < 3)
            for (const auto& [key, value] : child->json().items()) read(*child, key, depth + 1);
    });
}

}  // namespace
}  // namespace exl3

EXL3_FUZZ_JSON_MUTATOR

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace exl3;
    auto config = HfConfig::parse({reinterpret_cast<const char*>(data), size}, "f.json");
    if (!config) {
        EXL3_CHECK(config.error().where().file == "f.json");
        return 0;
    }
    attempt([&] { config->architecture(); });
    attempt([&] { eos_token_ids(*config, *config); });
    for (const std::string& path : config->unread()) read(*config, path, 0);
    for (const auto& [key, value] : config->json().items()) read(*config, key, 0);
    config->unread();
    return 0;
}
