"""The anthropic package against every route of its protocol."""
import anthropic
import pytest

MESSAGES = [{"role": "user", "content": "Tell me about a fox."}]
TOOLS = [{"name": "get_weather", "description": "The weather of a city",
          "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}]


def test_messages(anthropic_client):
    m = anthropic_client.messages.create(model="m", max_tokens=12, messages=MESSAGES, extra_body={"temperature": 0}, system="Be kind.")
    assert m.id.startswith("msg_") and m.role == "assistant" and m.stop_reason == "max_tokens"
    assert m.content[0].type == "text" and m.content[0].text
    assert m.usage.output_tokens == 12 and m.usage.input_tokens + m.usage.cache_read_input_tokens > 10


def test_stream_equals_whole(anthropic_client):
    args = dict(model="m", max_tokens=16, messages=MESSAGES, extra_body={"temperature": 0})
    whole = anthropic_client.messages.create(**args)
    with anthropic_client.messages.stream(**args) as stream:
        kinds = [e.type for e in stream]
        final = stream.get_final_message()
    assert final.content[0].text == whole.content[0].text
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
    assert final.usage.output_tokens == 16 and final.stop_reason == "max_tokens"


def test_stop_sequence(anthropic_client):
    args = dict(model="m", max_tokens=40, messages=MESSAGES, extra_body={"temperature": 0})
    text = anthropic_client.messages.create(**args).content[0].text
    stop = text[10:15]
    m = anthropic_client.messages.create(**args, stop_sequences=[stop])
    assert m.stop_reason == "stop_sequence" and m.stop_sequence == stop
    assert "".join(b.text for b in m.content) == text[:text.index(stop)]


def test_tools(anthropic_client):
    args = dict(model="m", max_tokens=100, messages=MESSAGES, tools=TOOLS, tool_choice={"type": "any"}, extra_body={"temperature": 0})
    m = anthropic_client.messages.create(**args)
    call = m.content[-1]
    assert m.stop_reason == "tool_use" and call.type == "tool_use" and call.id.startswith("toolu_")
    assert isinstance(call.input, dict)
    with anthropic_client.messages.stream(**args) as stream:
        final = stream.get_final_message()
    assert final.content[-1].input == call.input and final.content[-1].name == "get_weather"
    again = anthropic_client.messages.create(model="m", max_tokens=4, tools=TOOLS, messages=MESSAGES + [
        {"role": "assistant", "content": [b.model_dump() for b in m.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"},
                                     {"type": "text", "text": "And now?"}]}])
    assert again.usage.output_tokens <= 4


def test_prefill_goes_on(anthropic_client):
    m = anthropic_client.messages.create(model="m", max_tokens=8, extra_body={"temperature": 0}, messages=MESSAGES + [
        {"role": "assistant", "content": "Once upon a time"}])
    assert not m.content[0].text.startswith("Once upon")


def test_count_tokens(anthropic_client):
    n = anthropic_client.messages.count_tokens(model="m", messages=MESSAGES, system=[{"type": "text", "text": "Hi"}])
    m = anthropic_client.messages.create(model="m", max_tokens=1, messages=MESSAGES, system="Hi")
    assert n.input_tokens == m.usage.input_tokens + m.usage.cache_read_input_tokens


def test_models(anthropic_client):
    models = anthropic_client.models.list().data
    assert models[0].id == "tales-9m" and models[0].type == "model"


def test_limit_beyond_the_context_is_lowered(anthropic_client):
    m = anthropic_client.messages.create(model="m", max_tokens=32000, messages=MESSAGES, stop_sequences=["a"])
    assert m.stop_reason in ("stop_sequence", "end_turn", "max_tokens")


@pytest.mark.parametrize("extra", [
    {"temperature": -1}, {"messages": []}, {"messages": [{"role": "user", "content": 5}]}, {"max_tokens": "x"},
    {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
    {"tool_choice": {"type": "tool", "name": "none"}},
])
def test_errors(anthropic_client, extra):
    with pytest.raises(anthropic.BadRequestError) as e:
        anthropic_client.post("/v1/messages", body={"model": "m", "max_tokens": 2, "messages": MESSAGES, **extra},
                              cast_to=object)
    body = e.value.body
    assert body["type"] == "error" and body["error"]["type"] == "invalid_request_error" and body["request_id"]


def test_too_long(anthropic_client):
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        anthropic_client.messages.create(model="m", max_tokens=2, messages=[{"role": "user", "content": "fox " * 2000}])


def test_key_is_needed(server):
    client = anthropic.Anthropic(base_url=server.url, api_key="wrong", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError):
        client.messages.create(model="m", max_tokens=1, messages=MESSAGES)
