"""The openai package against every route of its protocol."""
import json

import openai
import pytest

MESSAGES = [{"role": "user", "content": "Tell me about a fox."}]
TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]


def test_models(openai_client):
    models = openai_client.models.list().data
    assert [m.id for m in models] == ["tales-9m", "tales"]
    assert openai_client.models.retrieve("tales-9m").object == "model"
    with pytest.raises(openai.NotFoundError):
        openai_client.models.retrieve("no/such")


def test_chat(openai_client):
    r = openai_client.chat.completions.create(model="tales", messages=MESSAGES, max_tokens=12, temperature=0)
    assert r.id.startswith("chatcmpl-") and r.object == "chat.completion" and r.model == "tales"
    assert r.choices[0].message.role == "assistant" and r.choices[0].message.content
    assert r.choices[0].finish_reason == "length"
    assert r.usage.completion_tokens == 12
    assert r.usage.total_tokens == r.usage.prompt_tokens + 12


def test_chat_stream_equals_whole(openai_client):
    args = dict(model="", messages=MESSAGES, max_tokens=24, temperature=0.9, seed=7)
    whole = openai_client.chat.completions.create(**args)
    chunks = list(openai_client.chat.completions.create(**args, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant" and chunks[0].choices[0].delta.content == ""
    assert len({c.id for c in chunks}) == 1
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 24
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "length"
    assert all(c.usage is None for c in chunks[:-1])


def test_chat_choices_interleave(openai_client):
    stream = openai_client.chat.completions.create(
        model="", messages=MESSAGES, max_tokens=8, n=3, seed=1, temperature=1, stream=True)
    texts, ends = ["", "", ""], {}
    for chunk in stream:
        for c in chunk.choices:
            texts[c.index] += c.delta.content or ""
            if c.finish_reason:
                ends[c.index] = c.finish_reason
    assert ends == {0: "length", 1: "length", 2: "length"}
    whole = openai_client.chat.completions.create(
        model="", messages=MESSAGES, max_tokens=8, n=3, seed=1, temperature=1)
    assert [c.message.content for c in whole.choices] == texts
    assert len(set(texts)) > 1
    assert whole.usage.completion_tokens == 24


def test_chat_logprobs(openai_client):
    args = dict(model="", messages=MESSAGES, max_tokens=6, temperature=0, logprobs=True, top_logprobs=3)
    r = openai_client.chat.completions.create(**args)
    entries = r.choices[0].logprobs.content
    assert len(entries) == 6
    assert b"".join(bytes(e.bytes) for e in entries).decode() == r.choices[0].message.content
    for e in entries:
        assert len(e.top_logprobs) == 3 and e.top_logprobs[0].token == e.token and e.logprob <= 0
    streamed = [e for c in openai_client.chat.completions.create(**args, stream=True)
                if c.choices and c.choices[0].logprobs for e in c.choices[0].logprobs.content]
    assert [e.token for e in streamed] == [e.token for e in entries]


def test_stop_string_is_left_out(openai_client):
    args = dict(model="", prompt="Once upon a time", max_tokens=64, temperature=0)
    full = openai_client.completions.create(**args).choices[0].text
    stop = full[20:27]
    for stream in (False, True):
        r = openai_client.completions.create(**args, stop=[stop], stream=stream)
        text, reason = "", None
        for chunk in (r if stream else [r]):
            if chunk.choices:
                text += chunk.choices[0].text
                reason = chunk.choices[0].finish_reason or reason
        assert text == full[:full.index(stop)] and reason == "stop"


def test_completions(openai_client):
    r = openai_client.completions.create(model="", prompt=["Once upon", "The cat"], max_tokens=5, n=2, seed=3)
    assert r.object == "text_completion" and r.id.startswith("cmpl-")
    assert [c.index for c in r.choices] == [0, 1, 2, 3]
    ids = openai_client.post("/token/encode", body={"text": "The cat"}, cast_to=object)["tokens"]
    a = openai_client.completions.create(model="", prompt=ids, max_tokens=5, temperature=0).choices[0].text
    b = openai_client.completions.create(model="", prompt="The cat", max_tokens=5, temperature=0).choices[0].text
    assert a == b
    assert openai_client.completions.create(
        model="", prompt="The cat", max_tokens=5, temperature=0, echo=True).choices[0].text == "The cat" + a
    none = openai_client.completions.create(model="", prompt="The cat", max_tokens=0)
    assert none.choices[0].text == "" and none.usage.completion_tokens == 0


def test_completion_logprobs(openai_client):
    r = openai_client.completions.create(model="", prompt="The cat", max_tokens=5, temperature=0, logprobs=2)
    p = r.choices[0].logprobs
    assert len(p.tokens) == len(p.token_logprobs) == len(p.top_logprobs) == len(p.text_offset) == 5
    assert "".join(p.tokens) == r.choices[0].text
    assert p.text_offset == [sum(map(len, p.tokens[:i])) for i in range(5)]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_tools_are_called(openai_client, choice):
    args = dict(model="", messages=MESSAGES, tools=TOOLS, tool_choice=choice, max_tokens=100, temperature=0)
    whole = openai_client.chat.completions.create(**args)
    message = whole.choices[0].message
    assert whole.choices[0].finish_reason == "tool_calls" and message.content is None
    call = message.tool_calls[0]
    assert call.type == "function" and call.function.name == "get_weather" and call.id
    json.loads(call.function.arguments)
    name, arguments, indexes = "", "", []
    for chunk in openai_client.chat.completions.create(**args, stream=True):
        for d in (chunk.choices[0].delta.tool_calls or [] if chunk.choices else []):
            indexes.append(d.index)
            name += d.function.name or ""
            arguments += d.function.arguments or ""
    assert name == "get_weather" and set(indexes) == {0} and arguments == call.function.arguments


def test_tool_conversation(openai_client, http):
    r = openai_client.chat.completions.create(model="", max_tokens=4, tools=TOOLS, messages=MESSAGES + [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Bonn\"}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}])
    assert r.usage.completion_tokens <= 4
    prompt = http.post("/apply-template", json={"messages": MESSAGES + [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}]}]}).json()["prompt"]
    assert '{"name": "f", "arguments": {}}' in prompt


def test_responses(openai_client):
    args = dict(model="", input="Tell me about a fox.", max_output_tokens=12, temperature=0)
    r = openai_client.responses.create(**args)
    assert r.status == "incomplete" and r.incomplete_details.reason == "max_output_tokens"
    assert r.output[0].type == "message" and r.output_text and r.usage.output_tokens == 12
    events = list(openai_client.responses.create(**args, stream=True))
    final = events[-1].response
    assert final.output_text == r.output_text
    with openai_client.responses.stream(model="", input="Hi", temperature=0, max_output_tokens=2) as stream:
        assert [e.type for e in stream].count("response.output_text.done") == 1
    assert events[0].type == "response.created" and events[-1].type == "response.incomplete"
    assert [e.sequence_number for e in events] == list(range(len(events)))


def test_responses_go_on(openai_client):
    first = openai_client.responses.create(model="", input="Hello", max_output_tokens=4, instructions="Be kind.")
    second = openai_client.responses.create(model="", input="More", max_output_tokens=4, previous_response_id=first.id)
    assert second.usage.input_tokens > first.usage.input_tokens - 20
    assert openai_client.responses.retrieve(first.id).id == first.id
    assert openai_client.responses.input_items.list(first.id).data[0].type == "message"
    openai_client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        openai_client.responses.retrieve(first.id)
    with pytest.raises(openai.NotFoundError):
        openai_client.responses.create(model="", input="More", previous_response_id="resp_none")


def test_responses_call_tools(openai_client):
    tools = [dict(type="function", **TOOLS[0]["function"]), {"type": "web_search"}]
    args = dict(model="", input="Hello", tools=tools, tool_choice="required", max_output_tokens=100, temperature=0)
    r = openai_client.responses.create(**args)
    call = r.output[-1]
    assert call.type == "function_call" and call.name == "get_weather" and call.call_id
    json.loads(call.arguments)
    with openai_client.responses.stream(**args) as stream:
        types = [e.type for e in stream]
    assert types.index("response.output_item.added") < types.index("response.function_call_arguments.delta")
    assert types[-2] == "response.output_item.done"
    again = openai_client.responses.create(model="", max_output_tokens=4, tools=tools, input=[
        {"role": "user", "content": "Hello"},
        {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments},
        {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}])
    assert again.usage.output_tokens <= 4


def expect_400(field, call):
    with pytest.raises(openai.BadRequestError) as e:
        call()
    assert e.value.body["param"] == field, e.value.body
    assert e.value.body["type"] == "invalid_request_error"
    return e.value.body


@pytest.mark.parametrize("field,extra", [
    ("temperature", {"temperature": -1}), ("top_p", {"top_p": 3}), ("n", {"n": 0}), ("n", {"n": 10**9}),
    ("max_tokens", {"max_tokens": "many"}), ("stop", {"stop": {"a": 1}}), ("stream", {"stream": "yes"}),
    ("presence_penalty", {"presence_penalty": -7}), ("logit_bias.x", {"logit_bias": {"x": 1}}),
    ("messages[0].content", {"messages": [{"role": "user"}]}),
    ("messages[0].role", {"messages": [{"content": "x"}]}), ("messages", {"messages": []}),
    ("messages[0].content[0]", {"messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]}),
    ("tool_choice", {"tool_choice": "required"}), ("tools[0].function.name", {"tools": [{"type": "function", "function": {}}]}),
    ("seed", {"seed": "x"}), ("top_logprobs", {"logprobs": True, "top_logprobs": 99}),
    ("banned_tokens", {"banned_tokens": [-4]}),
])
def test_errors_name_the_field(openai_client, field, extra):
    body = {"model": "", "messages": MESSAGES, "max_tokens": 2, **extra}
    expect_400(field, lambda: openai_client.post("/chat/completions", body=body, cast_to=object))


def test_negative_penalties_and_unknown_fields_are_fine(openai_client):
    openai_client.chat.completions.create(
        model="whatever", messages=MESSAGES, max_tokens=2, presence_penalty=-2, frequency_penalty=-1,
        extra_body={"no_such_field": [1], "top_k": None, "min_p": 0.1, "service_tier": "auto"})


def test_too_long(openai_client):
    body = expect_400("messages", lambda: openai_client.chat.completions.create(
        model="", messages=[{"role": "user", "content": "fox " * 2000}]))
    assert body["code"] == "context_length_exceeded" and "maximum context length" in body["message"]
    expect_400("messages", lambda: openai_client.chat.completions.create(
        model="", messages=MESSAGES, max_tokens=5000))


def test_keys(server):
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        client.models.list()
    admin = openai.OpenAI(base_url=server.url + "/v1", api_key="test-admin-key", max_retries=0)
    assert admin.models.list().data


SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}},
          "required": ["name", "age"], "additionalProperties": False}


@pytest.mark.parametrize("stream", [False, True])
def test_structured_output(openai_client, stream):
    r = openai_client.chat.completions.create(
        model="", messages=MESSAGES, max_tokens=100, seed=5, temperature=1, stream=stream,
        response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}})
    if stream:
        text = "".join(c.choices[0].delta.content or "" for c in r if c.choices)
    else:
        text = r.choices[0].message.content
        assert r.choices[0].finish_reason == "stop"
    value = json.loads(text)
    assert set(value) == {"name", "age"} and isinstance(value["age"], int)


def test_choices_and_regex(http):
    r = http.post("/v1/completions", json={"prompt": "A", "guided_choice": ["yes", "no"], "max_tokens": 20})
    assert r.json()["choices"][0]["text"] in ("yes", "no")
    r = http.post("/v1/completions", json={"prompt": "A", "regex_pattern": "[0-9]{3}-[a-c]", "max_tokens": 20})
    text = r.json()["choices"][0]["text"]
    assert len(text) == 5 and text[3] == "-" and text[:3].isdigit()


def test_bad_formats_name_the_field(openai_client):
    expect_400("response_format.json_schema", lambda: openai_client.chat.completions.create(
        model="", messages=MESSAGES, response_format={"type": "json_schema", "json_schema": {
            "name": "x", "schema": {"type": "nonsense"}}}))
    expect_400("regex_pattern", lambda: openai_client.chat.completions.create(
        model="", messages=MESSAGES, extra_body={"regex_pattern": "(("}))


def test_reasoning_is_limited(http):
    # The template of this request begins the answer inside reasoning; the model never closes it by itself.
    template = "{% for m in messages %}{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<think>\n{% endif %}{# </think> #}"
    body = {"messages": MESSAGES, "chat_template": template, "temperature": 0, "max_tokens": 40, "reasoning_budget_tokens": 10}
    r = http.post("/v1/chat/completions", json=body).json()
    message, usage = r["choices"][0]["message"], r["usage"]
    assert message["reasoning_content"] and message["content"] and "think" not in message["content"]
    assert usage["completion_tokens"] == 40 and 10 <= usage["completion_tokens_details"]["reasoning_tokens"] <= 12
    body["reasoning_budget_tokens"] = 0
    message = http.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]
    assert "reasoning_content" not in message and message["content"]
