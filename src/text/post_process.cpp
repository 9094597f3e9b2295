#include "text/post_process.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/vocab.h"

namespace exl3::text {
namespace {

// "cls": ["[CLS]", 101]
int32_t load_pair(const JsonNode& node) {
    const JsonValue& v = node.value();
    if (!v.is_array() || v.items.size() != 2 || v.items[1].kind != JsonValue::Kind::number ||
        !(v.items[1].number >= 0 && v.items[1].number <= static_cast<double>(Vocab::kMaxId)))
        node.fail("needs a token and its id");
    return static_cast<int32_t>(v.items[1].number);
}

}  // namespace

PostProcessor::PostProcessor(std::vector<int32_t> before, std::vector<int32_t> after) {
    before.push_back(kText);
    before.insert(before.end(), after.begin(), after.end());
    steps_.push_back(std::move(before));
}

PostProcessor PostProcessor::load(const JsonNode& node) {
    PostProcessor p;
    p.load_step(node);
    return p;
}

void PostProcessor::load_step(const JsonNode& node) {
    const std::string& type = node.text("type");
    if (type == "Sequence") {
        for (const JsonNode& step : node.list("processors")) load_step(step);
    } else if (type == "TemplateProcessing") {
        load_template(node);
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
        steps_.push_back({load_pair(node.at("cls")), kText, load_pair(node.at("sep"))});
    } else if (type != "ByteLevel") {  // which moves offsets only
        node.at("type").fail(fmt::format("is the unknown post-processor '{}'", type),
                             Errc::unsupported);
    }
}

void PostProcessor::load_template(const JsonNode& node) {
    std::vector<int32_t> step;
    for (const JsonNode& item : node.list("single")) {
        if (item.has("Sequence")) {
            if (item.at("Sequence").text("id") != "A") continue;
            if (std::find(step.begin(), step.end(), kText) != step.end())
                item.at("Sequence").fail("repeats the text", Errc::unsupported);
            step.push_back(kText);
            continue;
        }
        const JsonNode special = item.at("SpecialToken");
        const std::string& name = special.text("id");
        const JsonNode tokens = node.at("special_tokens");
        if (!tokens.has(name))
            special.at("id").fail(fmt::format("names '{}', which is not in special_tokens", name));
        for (const JsonNode& id : tokens.at(name).list("ids")) {
            const double n = id.value().number;
            if (id.value().kind != JsonValue::Kind::number ||
                !(n >= 0 && n <= static_cast<double>(Vocab::kMaxId)))
                id.fail("needs a token id");
            step.push_back(static_cast<int32_t>(n));
        }
    }
    steps_.push_back(std::move(step));
}

std::vector<int32_t> PostProcessor::apply(std::vector<int32_t> ids) const {
    for (const std::vector<int32_t>& step : steps_) {
        std::vector<int32_t> out;
        out.reserve(ids.size() + step.size());
        for (const int32_t id : step) {
            if (id == kText)
                out.insert(out.end(), ids.begin(), ids.end());
            else
                out.push_back(id);
        }
        ids = std::move(out);
    }
    return ids;
}

bool PostProcessor::begins_with(int32_t id) const {
    // A text may be empty, so the token must stand before it.
    return std::any_of(steps_.rbegin(), steps_.rend(), [&](const std::vector<int32_t>& step) {
        return !step.empty() && step.front() == id;
    });
}

}  // namespace exl3::text
