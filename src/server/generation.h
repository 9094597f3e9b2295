#pragma once
#include <functional>
#include <memory>

#include "api/reply.h"
#include "api/request.h"
#include "server/service.h"

namespace exl3::server {

/// A request made ready for one model: prompts as ids, and how its answers are read.
struct PreparedRequest {
    api::GenerationRequest request;
    std::vector<std::vector<int32_t>> prompts;
    std::vector<std::string> echo;  ///< text of each prompt
    api::OutputParserOptions parser;
    std::string forced;  ///< text the answer begins with by force; the parser is fed it first
    std::shared_ptr<Constraint> constraint;  ///< of each answer; null: none
    ConstraintScope scope;
    bool scope_waits = false;  ///< the constraint holds only after scope.begins_after
};

/// Renders the conversation or encodes the prompts. Throws ApiError: the template refuses the
/// messages, or the prompt does not fit.
PreparedRequest prepare(const LoadedModel& model, api::GenerationRequest request);

/// How many tokens may be produced after a prompt. Throws ApiError when prompt and limit do not fit
/// together; with `clamp` the limit gives way.
int64_t room_for_answer(const LoadedModel& model, const api::GenerationRequest& request,
                        size_t prompt_tokens, bool clamp);

/// Which protocol answers.
struct Protocol {
    std::unique_ptr<api::Reply> (*make_reply)(api::ReplyHead head) = nullptr;
    bool clamp = false;  ///< a limit beyond the context is lowered instead of refused
    /// Called with the whole reply, streamed or not, when it is complete.
    std::function<void(const Json& reply)> keep;
};

/// Answers a request: queues its jobs and turns what they yield into the reply. Returns at once.
/// Throws ApiError for what can be known before the first token.
void start_generation(Service& service, const Call& call, std::shared_ptr<LoadedModel> model,
                      api::GenerationRequest request, Protocol protocol);

}  // namespace exl3::server
