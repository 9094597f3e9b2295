#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/json.h"
#include "text/jinja.h"

namespace exl3 {

/// The chat templates of a model folder, and the way a conversation becomes a prompt with them.
/// Immutable once loaded, so any number of threads may use it.
///
/// A request is a JSON object. Its members are the template's variables (messages, tools,
/// documents, add_generation_prompt, bos_token, enable_thinking, ...), except
/// - continue_final_message: the prompt ends inside the last message, for the model to go on;
/// - date: "2026-01-15", the day that strftime_now sees;
/// - template: the text of a template, for render_requests() alone.
/// With messages come tools, documents (none) and add_generation_prompt (false) when it has none
/// of its own: templates ask `tools is defined` and `tools is not none`, and the answers are those
/// that transformers gives. Special tokens of the model fill in where the request names none.
class ChatTemplates {
public:
    /// No templates: apply() fails, requests with a template of their own work.
    ChatTemplates() = default;
    /// Reads what `folder` has. The first source that gives a default template wins, and those
    /// before it add named ones: tabby_template.jinja, chat_template.jinja,
    /// additional_chat_templates/NAME.jinja, chat_template.json, tokenizer_config.json.
    /// `template_file`, if not empty, replaces them all. A folder without templates is no failure;
    /// nor is one whose template cannot be parsed: completions still work, apply() gives the
    /// reason.
    static Result<ChatTemplates> load(const std::filesystem::path& folder,
                                      const std::filesystem::path& template_file = {});
    /// One template file, no special tokens.
    static Result<ChatTemplates> load_file(const std::filesystem::path& template_file);

    bool empty() const { return templates_.empty(); }
    /// Names of the templates, "default" for the nameless one.
    std::vector<std::string> names() const;
    /// The template for a request: the one called `name` if that is not empty; "tool_use" if tools
    /// are given and it exists; "default"; the only one. Error{invalid_argument} otherwise.
    Result<JinjaTemplate> select(bool with_tools, std::string_view name = {}) const;
    /// The prompt for a request. Its text holds whatever special tokens the template writes, BOS
    /// among them (see needs_bos). A message given to raise_exception is the whole text of the
    /// Error; other failures name the template, line and column.
    Result<std::string> apply(const Json& request, std::string_view name = {},
                              const RenderOptions& options = {}) const;
    /// The same with a template of the caller's.
    Result<std::string> apply(const JinjaTemplate& with, const Json& request,
                              const RenderOptions& options = {}) const;
    /// Texts of bos_token, eos_token and so on, as the model folder gives them.
    const Json& special_tokens() const { return special_tokens_; }

private:
    void add(const std::string& name, std::string_view source, const std::string& file);
    Result<bool> add_json(const Json& value, const std::string& file);
    Result<bool> read_files(const std::filesystem::path& folder);
    Result<bool> read_tokenizer_config(const std::filesystem::path& folder);

    std::map<std::string, Result<JinjaTemplate>> templates_;
    Json special_tokens_ = Json::object();
};

/// A list of requests, each rendered with its own `template` if it has one, else with those of
/// `templates`: a JSON array of {"prompt": text} or {"error": text}.
Result<Json> render_requests(const ChatTemplates& templates, const Json& requests);
/// One such request.
Result<std::string> render_request(const ChatTemplates& templates, const Json& request);

/// True if BOS must be put in front of a prompt: it is wanted, and the prompt does not start with
/// it already. Templates that write BOS themselves thus never get it twice.
bool needs_bos(std::string_view prompt, std::string_view bos);

}  // namespace exl3
