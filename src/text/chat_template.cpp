#include "text/chat_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/mapped_file.h"
#include "text/jinja_unicode.h"

namespace exl3 {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTag = "CONTINUE_FINAL_MESSAGE_TAG ";
constexpr std::string_view kBareTag = kTag.substr(0, kTag.size() - 1);

bool present(const Json& object, const char* key) {
    const auto at = object.find(key);
    return at != object.end() && !at->is_null();
}

Error bad_request(std::string_view what) {
    return Error(Errc::invalid_argument, {}, what);
}

// A member that is true or false, false if absent.
Result<bool> flag(const Json& request, const char* key) {
    if (!present(request, key)) return false;
    const Json& value = request[key];
    if (value.is_boolean()) return value.get<bool>();
    return bad_request(fmt::format("{}: found {}, needed true or false", key, value.type_name()));
}

// The text that the last message ends with: its content, or the last text part of its content.
std::string* final_text(Json& vars) {
    const auto messages = vars.find("messages");
    if (messages == vars.end() || !messages->is_array() || messages->empty()) return nullptr;
    Json& last = messages->back();
    const auto content = last.is_object() ? last.find("content") : last.end();
    if (!last.is_object() || content == last.end()) return nullptr;
    if (content->is_string()) return content->get_ptr<std::string*>();
    if (!content->is_array()) return nullptr;
    for (auto part = content->rbegin(); part != content->rend(); ++part)
        if (part->is_object() && part->contains("text") && (*part)["text"].is_string())
            return (*part)["text"].get_ptr<std::string*>();
    return nullptr;
}

// Cuts a rendering whose last message ended with the tag: at the tag, and at the text before it
// where the template strips the white space off messages.
Result<std::string> cut_at_tag(std::string prompt, const std::string& text) {
    const size_t tag = prompt.rfind(kBareTag);
    if (tag == std::string::npos || prompt.find(jinja::strip(text)) == std::string::npos)
        return bad_request(
            "continue_final_message: the final message does not appear in the rendered chat");
    const bool kept_space = prompt.compare(tag, kTag.size(), kTag) == 0;
    prompt.resize(tag);
    if (!kept_space) prompt.resize(jinja::strip_right(prompt).size());
    return prompt;
}

// The text of a special token: a string, or an object with its content.
const Json* token_text(const Json& value) {
    if (value.is_string()) return &value;
    if (value.is_object() && value.contains("content") && value["content"].is_string())
        return &value["content"];
    return nullptr;
}

void take_tokens(const Json& from, Json& into) {
    for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                             "cls_token", "mask_token"})
        if (!into.contains(name) && from.contains(name))
            if (const Json* text = token_text(from[name])) into[name] = *text;
    if (const auto extra = from.find("extra_special_tokens");
        extra != from.end() && extra->is_object())
        for (const auto& [name, value] : extra->items())
            if (const Json* text = token_text(value); text && !into.contains(name))
                into[name] = *text;
    const auto more = from.find("additional_special_tokens");
    if (more == from.end() || !more->is_array() || into.contains(more.key())) return;
    Json texts = Json::array();
    for (const Json& value : *more)
        if (const Json* text = token_text(value)) texts.push_back(*text);
    if (!texts.empty()) into[more.key()] = std::move(texts);
}

Result<Json> read_json(const fs::path& file) {
    Result<std::string> text = read_file(file);
    if (!text) return text.error();
    std::string_view body = *text;
    if (body.starts_with("\xef\xbb\xbf")) body.remove_prefix(3);
    return parse_json(body, file.string());
}

}  // namespace

void ChatTemplates::add(const std::string& name, std::string_view source, const std::string& file) {
    if (!templates_.count(name)) templates_.emplace(name, JinjaTemplate::parse(source, file));
}

// A template, an object of named ones, or a list of {name, template}.
Result<bool> ChatTemplates::add_json(const Json& value, const std::string& file) {
    if (value.is_string()) {
        add("default", value.get_ref<const std::string&>(), file);
        return true;
    }
    const Error bad(Errc::invalid_file, {file, {}, {}},
                    "chat_template: found neither text nor a list of {name, template}");
    if (!value.is_structured()) return bad;
    for (const auto& [key, entry] : value.items()) {
        const bool named = value.is_object();
        if (!named && !(entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
                        entry.contains("template")))
            return bad;
        const Json& source = named ? entry : entry["template"];
        const std::string name = named ? key : entry["name"].get<std::string>();
        if (!source.is_string()) return bad;
        add(name, source.get_ref<const std::string&>(), fmt::format("{} ({})", file, name));
    }
    return true;
}

Result<bool> ChatTemplates::read_files(const fs::path& folder) {
    for (const char* name : {"tabby_template.jinja", "chat_template.jinja"}) {
        if (!fs::exists(folder / name)) continue;
        const Result<std::string> text = read_file(folder / name);
        if (!text) return text.error();
        add("default", Result<std::string>(text).value(), (folder / name).string());
    }
    std::error_code ignored;  // no such folder, no templates in it
    std::vector<fs::path> more;
    for (const auto& entry : fs::directory_iterator(folder / "additional_chat_templates", ignored))
        if (entry.path().extension() == ".jinja") more.push_back(entry.path());
    std::sort(more.begin(), more.end());
    for (const fs::path& path : more) {
        Result<std::string> text = read_file(path);
        if (!text) return text.error();
        add(path.stem().string(), *text, path.string());
    }
    if (templates_.count("default") || !fs::exists(folder / "chat_template.json")) return true;
    Result<Json> json = read_json(folder / "chat_template.json");
    if (!json) return json.error();
    if (!json->is_object() || !present(*json, "chat_template")) return true;
    return add_json((*json)["chat_template"], (folder / "chat_template.json").string());
}

Result<bool> ChatTemplates::read_tokenizer_config(const fs::path& folder) {
    for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
        if (!fs::exists(folder / name)) continue;
        Result<Json> json = read_json(folder / name);
        if (!json) return json.error();
        if (!json->is_object())
            return Error(Errc::invalid_file, {(folder / name).string(), {}, {}},
                         fmt::format("found {}, needed an object", json->type_name()));
        take_tokens(*json, special_tokens_);
        if (templates_.count("default") || !present(*json, "chat_template")) continue;
        const auto added = add_json((*json)["chat_template"], (folder / name).string());
        if (!added) return added.error();
    }
    return true;
}

Result<ChatTemplates> ChatTemplates::load(const fs::path& folder, const fs::path& template_file) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored))
        return Error(Errc::io, {folder.string(), {}, {}}, "found no folder, needed a model folder");
    ChatTemplates all;
    if (!template_file.empty()) {
        Result<ChatTemplates> one = load_file(template_file);
        if (!one) return one.error();
        all = std::move(*one);
    } else if (const auto read = all.read_files(folder); !read) {
        return read.error();
    }
    if (const auto read = all.read_tokenizer_config(folder); !read) return read.error();
    return all;
}

Result<ChatTemplates> ChatTemplates::load_file(const fs::path& template_file) {
    Result<std::string> text = read_file(template_file);
    if (!text) return text.error();
    ChatTemplates all;
    all.add("default", *text, template_file.string());
    return all;
}

std::vector<std::string> ChatTemplates::names() const {
    std::vector<std::string> out;
    for (const auto& [name, parsed] : templates_) out.push_back(name);
    return out;
}

Result<JinjaTemplate> ChatTemplates::select(bool with_tools, std::string_view name) const {
    if (!name.empty()) {
        const auto at = templates_.find(std::string(name));
        if (at != templates_.end()) return at->second;
        return bad_request(fmt::format("found no chat template called '{}'", name));
    }
    if (with_tools)
        if (const auto at = templates_.find("tool_use"); at != templates_.end()) return at->second;
    if (const auto at = templates_.find("default"); at != templates_.end()) return at->second;
    if (templates_.size() == 1) return templates_.begin()->second;
    if (templates_.empty()) return bad_request("the model has no chat template");
    return bad_request("the model has several chat templates and none called 'default': name one");
}

Result<std::string> ChatTemplates::apply(const Json& request, std::string_view name,
                                         const RenderOptions& options) const {
    if (!request.is_object())
        return bad_request(fmt::format("request: found {}, needed an object", request.type_name()));
    Result<JinjaTemplate> chosen = select(present(request, "tools"), name);
    if (!chosen) return chosen.error();
    return apply(*chosen, request, options);
}

Result<std::string> ChatTemplates::apply(const JinjaTemplate& with, const Json& request,
                                         const RenderOptions& options) const {
    if (!request.is_object())
        return bad_request(fmt::format("request: found {}, needed an object", request.type_name()));
    Json vars = request;
    for (const char* ours : {"continue_final_message", "date", "template"}) vars.erase(ours);
    if (vars.contains("messages")) {
        for (const char* name : {"tools", "documents"})
            if (!vars.contains(name)) vars[name] = nullptr;
        if (!vars.contains("add_generation_prompt")) vars["add_generation_prompt"] = false;
    }
    for (const auto& [name, text] : special_tokens_.items())
        if (!vars.contains(name)) vars[name] = text;

    RenderOptions timed = options;
    if (present(request, "date")) {
        if (!request["date"].is_string())
            return bad_request("date: needed text such as 2026-01-15");
        Result<CivilTime> now = CivilTime::parse(request["date"].get_ref<const std::string&>());
        if (!now) return now.error();
        timed.now = *now;
    }
    Result<bool> continues = flag(request, "continue_final_message");
    if (!continues) return continues.error();
    if (!*continues) return with.render(vars, timed);

    if (vars.contains("add_generation_prompt") && vars["add_generation_prompt"] == true)
        return bad_request(
            "continue_final_message: found add_generation_prompt as well, needed one of the two");
    std::string* text = final_text(vars);
    if (!text)
        return bad_request(
            "continue_final_message: found no text to continue in the final message");
    const std::string before = *text;
    *text += kTag;
    Result<std::string> prompt = with.render(vars, timed);
    if (!prompt) return prompt;
    return cut_at_tag(std::move(*prompt), before);
}

Result<std::string> render_request(const ChatTemplates& templates, const Json& request) {
    if (!request.is_object() || !present(request, "template")) return templates.apply(request);
    if (!request["template"].is_string())
        return bad_request(
            fmt::format("template: found {}, needed text", request["template"].type_name()));
    Result<JinjaTemplate> own =
        JinjaTemplate::parse(request["template"].get_ref<const std::string&>(), "template");
    if (!own) return own.error();
    return templates.apply(*own, request);
}

Result<Json> render_requests(const ChatTemplates& templates, const Json& requests) {
    if (!requests.is_array())
        return bad_request(fmt::format("requests: found {}, needed a list", requests.type_name()));
    Json out = Json::array();
    for (const Json& request : requests) {
        Result<std::string> prompt = render_request(templates, request);
        Json entry = Json::object();
        if (prompt)
            entry["prompt"] = std::move(*prompt);
        else
            entry["error"] = prompt.error().what();
        out.push_back(std::move(entry));
    }
    return out;
}

bool needs_bos(std::string_view prompt, std::string_view bos) {
    return !bos.empty() && !prompt.starts_with(bos);
}

}  // namespace exl3
