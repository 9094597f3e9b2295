#include "text/precompiled.h"
namespace exl3::text {
std::unique_ptr<Normalizer> load_precompiled(const JsonNode& node) {
    node.at("type").fail("is not supported yet", Errc::unsupported);
}
}  // namespace exl3::text
