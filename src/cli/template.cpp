// Conversations to prompts.
#include "text/chat_template.h"

#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"

namespace exl3::cli {
namespace {

struct TemplateOptions {
    std::string model, file, request, batch;
};

ChatTemplates load_templates(const TemplateOptions& o) {
    if (o.model.empty()) return ChatTemplates::load_file(o.file).value();
    return ChatTemplates::load(o.model, o.file).value();
}

void render(const TemplateOptions& o) {
    const ChatTemplates templates = load_templates(o);
    if (o.batch.empty())
        print(render_request(templates, read_json_input(o.request)).value());
    else
        print_json(render_requests(templates, read_json_input(o.batch)).value());
}

}  // namespace

void add_template(Command& command) {
    auto& o = command.options<TemplateOptions>();
    auto* source = command.app.add_option_group("template", "Where the template comes from");
    source->add_option("-m,--model", o.model, "Model folder")->type_name("DIR");
    source
        ->add_option("--template", o.file, "A template file; with -m, in place of the model's own")
        ->type_name("FILE");
    source->require_option(1, 2);
    auto* what = command.app.add_option_group("requests", "What to render");
    what->add_option("--request", o.request,
                     "JSON {messages, tools?, documents?, add_generation_prompt?, "
                     "continue_final_message?, date?, any variable}; -: stdin")
        ->type_name("FILE");
    what->add_option("--batch", o.batch,
                     "A JSON array of requests, each of which may have a `template` (text); "
                     "-: stdin")
        ->type_name("FILE");
    what->require_option(1);
    command.run([&o] { render(o); });
}

}  // namespace exl3::cli
