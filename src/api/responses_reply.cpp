// Replies of /v1/responses: a list of items, each with events of its own.
#include "api/fields.h"
#include "api/reply.h"

namespace exl3::api {
namespace {

using Kind = OutputEvent::Kind;

class ResponsesReply : public Reply {
public:
    explicit ResponsesReply(ReplyHead head) : Reply(std::move(head)), id_(make_id("resp_")) {}

    std::string begin(const Usage&) override {
        if (!head_.stream) return {};
        const Json response = object("in_progress", nullptr, nullptr);
        std::string out = event("response.created", {{"response", response}});
        return out += event("response.in_progress", {{"response", response}});
    }

    std::string end(const Usage& usage) override {
        if (!head_.stream) return {};
        const Json response = whole(usage);
        return event(complete() ? "response.completed" : "response.incomplete",
                     {{"response", response}});
    }

    std::string fail(const ApiError& error) override {
        Json response = object("failed", nullptr, nullptr);
        response["error"] = {{"code", error.code().empty() ? "server_error" : error.code()},
                             {"message", error.message()}};
        return event("response.failed", {{"response", std::move(response)}});
    }

    Json whole(const Usage& usage) override {
        finish_items();
        const Json reason = complete() ? Json() : Json{{"reason", "max_output_tokens"}};
        return object(complete() ? "completed" : "incomplete", reason,
                      {{"input_tokens", usage.prompt_tokens},
                       {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
                       {"output_tokens", usage.completion_tokens},
                       {"output_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}},
                       {"total_tokens", usage.prompt_tokens + usage.completion_tokens}});
    }

protected:
    // Items are recorded while streaming, and made from the whole text otherwise.
    std::string show(int, const OutputEvent& e, std::span<const TokenReport> tokens,
                     const Usage&) override {
        std::string out;
        switch (e.kind) {
            case Kind::reasoning:
                out = open("reasoning");
                return out += text_delta("response.reasoning_text.delta", e.text);
            case Kind::content:
                out = open("message");
                tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
                return out += text_delta("response.output_text.delta", e.text, logprobs(tokens));
            case Kind::call_start:
                out = close("completed");
                call_name_ = e.name;
                call_id_ = e.id;
                return out += open(is_custom(e.name) ? "custom_tool_call" : "function_call");
            case Kind::call_arguments:
                text_ += e.text;
                // The text of a custom tool is inside the arguments and known at their end.
                if (open_ == "custom_tool_call") return {};
                return event("response.function_call_arguments.delta",
                             {{"item_id", item_id_}, {"output_index", index()}, {"delta", e.text}});
            case Kind::call_end: return close("completed");
        }
        return {};
    }
    std::string show_end(int, std::span<const TokenReport>, const Usage&) override {
        return close(complete() ? "completed" : "incomplete");
    }

private:
    bool complete() const {
        const auto why = choices_[0].end.why;
        return why != ChoiceEnd::Why::length && why != ChoiceEnd::Why::context_full;
    }
    size_t index() const { return items_.size(); }

    std::string event(const std::string& type, const Json& members) {
        Json data = {{"type", type}, {"sequence_number", sequence_++}};
        for (const auto& [key, value] : members.items()) data[key] = value;
        return sse(data, type);
    }

    Json object(const char* status, const Json& incomplete, const Json& usage) const {
        Json r = {{"id", id_},
                  {"object", "response"},
                  {"created_at", head_.created},
                  {"status", status},
                  {"error", nullptr},
                  {"incomplete_details", incomplete},
                  {"model", head_.model},
                  {"output", items_}};
        for (const auto& [key, value] : head_.echoed.items()) r[key] = value;
        r["usage"] = usage;
        return r;
    }

    Json logprobs(std::span<const TokenReport> tokens) const {
        Json list = Json::array();
        if (!head_.logprobs) return list;
        for (const TokenReport& t : tokens) {
            Json top = Json::array();
            for (const auto& other : t.top)
                top.push_back({{"token", readable(other.bytes)},
                               {"logprob", finite_logprob(other.logprob)},
                               {"bytes", Json::array()}});
            list.push_back({{"token", readable(t.bytes)},
                            {"logprob", finite_logprob(t.logprob)},
                            {"bytes", Json::array()},
                            {"top_logprobs", std::move(top)}});
        }
        return list;
    }

    // The item that is open, as it stands.
    Json item(const std::string& status) const {
        Json i = {{"id", item_id_}, {"type", open_}, {"status", status}};
        const bool begun = status != "in_progress";
        if (open_ == "reasoning") {
            i["summary"] = Json::array();
            i["content"] = Json::array();
            if (begun) i["content"].push_back(part());
            i["encrypted_content"] = nullptr;
        } else if (open_ == "message") {
            i["role"] = "assistant";
            i["content"] = Json::array();
            if (begun) i["content"].push_back(part());
        } else {
            i["call_id"] = call_id_;
            i["name"] = call_name_;
            if (open_ == "function_call")
                i["arguments"] = text_;
            else
                i["input"] = begun ? custom_input({call_id_, call_name_, text_}) : std::string();
        }
        return i;
    }
    Json part() const {
        if (open_ == "reasoning") return {{"type", "reasoning_text"}, {"text", text_}};
        return {{"type", "output_text"},
                {"text", text_},
                {"annotations", Json::array()},
                {"logprobs", logprobs(tokens_)}};
    }
    Json place() const {
        return {{"item_id", item_id_}, {"output_index", index()}, {"content_index", 0}};
    }

    std::string open(const std::string& kind) {
        if (open_ == kind && kind != "function_call" && kind != "custom_tool_call") return {};
        std::string out = close("completed");
        open_ = kind;
        item_id_ = make_id(kind == "reasoning"       ? "rs_"
                           : kind == "message"       ? "msg_"
                           : kind == "function_call" ? "fc_"
                                                     : "ctc_");
        out += event("response.output_item.added",
                     {{"output_index", index()}, {"item", item("in_progress")}});
        if (kind == "reasoning" || kind == "message") {
            Json members = place();
            members["part"] = part();
            out += event("response.content_part.added", members);
        }
        return out;
    }

    std::string text_delta(const char* type, const std::string& text, const Json& probs = {}) {
        text_ += text;
        Json members = place();
        members["delta"] = text;
        if (open_ == "message") members["logprobs"] = probs;
        return event(type, members);
    }

    std::string close(const std::string& status) {
        if (open_.empty()) return {};
        std::string out;
        Json members = place();
        if (open_ == "reasoning" || open_ == "message") {
            const bool message = open_ == "message";
            members["text"] = text_;
            if (message) members["logprobs"] = logprobs(tokens_);
            out += event(message ? "response.output_text.done" : "response.reasoning_text.done",
                         members);
            Json done = place();
            done["part"] = part();
            out += event("response.content_part.done", done);
        } else if (open_ == "function_call") {
            out += event("response.function_call_arguments.done", {{"item_id", item_id_},
                                                                   {"output_index", index()},
                                                                   {"name", call_name_},
                                                                   {"arguments", text_}});
        } else {
            const std::string input = custom_input({call_id_, call_name_, text_});
            out += event("response.custom_tool_call_input.delta",
                         {{"item_id", item_id_}, {"output_index", index()}, {"delta", input}});
            out += event("response.custom_tool_call_input.done",
                         {{"item_id", item_id_}, {"output_index", index()}, {"input", input}});
        }
        const Json whole_item = item(status);
        out +=
            event("response.output_item.done", {{"output_index", index()}, {"item", whole_item}});
        items_.push_back(whole_item);
        open_.clear();
        text_.clear();
        tokens_.clear();
        return out;
    }

    // Without a stream nothing was shown: the items are made now, from the record.
    void finish_items() {
        if (head_.stream || !items_.empty()) return;
        const Choice& c = choices_[0];
        const std::string status = complete() ? "completed" : "incomplete";
        if (!c.reasoning.empty()) {
            open("reasoning");
            text_ = c.reasoning;
            close(c.content.empty() && c.calls.empty() ? status : "completed");
        }
        if (!c.content.empty() || (c.calls.empty() && c.reasoning.empty())) {
            open("message");
            text_ = c.content;
            tokens_ = c.tokens;
            close(status);
        }
        for (const Call& call : c.calls) {
            call_name_ = call.name;
            call_id_ = call.id;
            open(is_custom(call.name) ? "custom_tool_call" : "function_call");
            text_ = call.arguments;
            close("completed");
        }
    }

    std::string id_;
    int64_t sequence_ = 0;
    Json items_ = Json::array();
    // The item that is open: its type, empty if there is none.
    std::string open_, item_id_, text_, call_name_, call_id_;
    std::vector<TokenReport> tokens_;
};

}  // namespace

std::unique_ptr<Reply> make_responses_reply(ReplyHead head) {
    return std::make_unique<ResponsesReply>(std::move(head));
}

}  // namespace exl3::api
