#pragma once
#include "api/messages.h"
#include "api/output_parser.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace exl3::api {

/// What a model's chat template expects of messages and makes of answers.
struct TemplateTraits {
    MessageTraits messages;
    OutputSyntax output;
    bool special_text = false;  ///< tags of the output are special tokens: decode those as text
    std::string before_name, after_name;  ///< how a call begins, around the function's name

    /// The text that begins a call of `name`, up to its arguments; of any function if it is empty.
    std::string call_beginning(const std::string& name) const {
        return name.empty() ? before_name : before_name + name + after_name;
    }
};

/// Renders the template with messages made to tell its properties: which roles and content it
/// takes, and how it writes a tool call, which is how the model will. Reasoning tags are those of
/// the template, or else of the vocabulary.
/// @param templates  may be empty: then everything is neutral
TemplateTraits probe_templates(const ChatTemplates& templates, const Tokenizer& tokenizer);
/// The same for one template; `is_token` says whether a text is one token of the vocabulary.
TemplateTraits probe_template(const ChatTemplates& templates, const JinjaTemplate& jinja,
                              const std::function<bool(std::string_view)>& is_token);

}  // namespace exl3::api
