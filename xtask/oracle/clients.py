"""Official clients of Python against the simulated provider: what they parse is what the script says.

Called by `cargo xtask oracle` as `clients.py BASE_URL SCRIPT FACTS`; exits with 1 on any difference. What both this and
`clients.mjs` see under one name goes into FACTS, where it is held against what the other saw.
"""

import json
import sys

import anthropic
import openai
from pydantic import BaseModel, TypeAdapter

URL, SCRIPT = sys.argv[1], json.load(open(sys.argv[2], encoding="utf-8"))
# Fields that the types of the client lack, each with the reason why it is told all the same.
KNOWN = {
    "ChatCompletionMessage.reasoning_content": "compatible services tell thinking so, OpenAI tells none on that wire",
    "ChoiceDelta.reasoning_content": "the same in a stream",
    "Response.store": "the service answers with it",
}
SCHEMA = {"type": "object", "properties": {"quay": {"type": "string"}}}
NAMES = ["tide_board", "boat_log"]
# Long enough to be kept.
RULES = "Look at the board before you speak of the tide. " * 100
facts = []
differences = 0
checks = 0


def same(what, got, expect, fact=True):
    global differences, checks
    checks += 1
    if fact:
        facts.append({"what": what, "got": got})
    if got != expect:
        differences += 1
        print(f"oracle: {what}: the client has {got!r}, the script says {expect!r}")


def valid(what, model):
    """The client parses leniently; here its own types are applied in full, and unknown fields are told."""
    data = model.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    error = None
    try:
        TypeAdapter(type(model)).validate_python(data)
    except ValueError as cause:
        error = str(cause)
    same(f"{what}: as {type(model).__name__}", error, None, fact=False)
    for unknown in unknown_fields(model):
        same(f"{what}: a field {type(model).__name__} does not have", unknown, None, fact=False)


def unknown_fields(value):
    if isinstance(value, BaseModel):
        extra = (f"{type(value).__name__}.{name}" for name in value.model_extra or {})
        yield from (name for name in extra if name not in KNOWN)
        for name in type(value).model_fields:
            yield from unknown_fields(getattr(value, name, None))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from unknown_fields(item)


def raises(what, kind, words, call, fact=True):
    try:
        call()
    except Exception as error:
        same(f"{what}: the class of the error", isinstance(error, kind) and type(error).__name__, kind.__name__, fact)
        same(f"{what}: {words!r} in the words of the error", words in str(error), True, fact)
        return error
    same(f"{what}: an error", None, kind.__name__, fact)


def calls_of(reply):
    return [(call["name"], call["input"]) for call in reply.get("calls", [])]


def thoughts_of(reply):
    return [reply["reasoning"]] if "reasoning" in reply else []


def usage_of(reply):
    usage = reply["usage"]
    read, write = usage.get("cache_read", 0), usage.get("cache_write_5m", 0)
    return usage["input"] + read + write, usage["output"], read, write, usage.get("reasoning", 0)


# --- Anthropic ---------------------------------------------------------------------------------------------------


def anthropic_client():
    client = anthropic.Anthropic(base_url=URL, api_key="k", max_retries=0)
    tools = [{"name": name, "description": "Tells.", "input_schema": SCHEMA} for name in NAMES]
    fields = {"model": "claude-opus-5-5", "max_tokens": 2048, "tools": tools}
    history = [{"role": "user", "content": "How is the harbour?"}]

    def streamed(**more):
        with client.messages.stream(**fields, **more) as stream:
            for event in stream:
                if not event.type.startswith(("text", "thinking", "signature", "input_json")):
                    valid("anthropic event", event)
            return stream.get_final_message()

    def whole(**more):
        return client.messages.create(**fields, **more)

    for what, ask in (("anthropic", whole), ("anthropic stream", streamed)):
        messages = list(history)
        for reply in SCRIPT[:2]:
            answer = ask(messages=messages)
            valid(what, answer)
            blocks = {kind: [b for b in answer.content if b.type == kind] for kind in ("thinking", "text", "tool_use")}
            same(f"{what}: thinking", [b.thinking for b in blocks["thinking"]], thoughts_of(reply))
            same(f"{what}: signed", all(b.signature for b in blocks["thinking"]), True)
            same(f"{what}: text", [b.text for b in blocks["text"]], [reply["text"]])
            same(f"{what}: calls", [(b.name, b.input) for b in blocks["tool_use"]], calls_of(reply))
            same(f"{what}: stop", answer.stop_reason, "tool_use" if reply.get("calls") else "end_turn")
            usage = answer.usage
            total, output, read, write, _ = usage_of(reply)
            got = (usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens, usage.output_tokens)
            same(f"{what}: tokens", got, (total, output))
            same(f"{what}: cached", (usage.cache_read_input_tokens, usage.cache_creation_input_tokens), (read, write))
            results = [{"type": "tool_result", "tool_use_id": b.id, "content": "ok"} for b in blocks["tool_use"]]
            said = [block.model_dump(exclude_unset=True, exclude={"parsed_output"}) for block in answer.content]
            messages += [{"role": "assistant", "content": said}, {"role": "user", "content": results or "And?"}]
        same(f"{what}: cut", ask(messages=messages).stop_reason, "max_tokens")

    # The third reply states no tokens: those are accounted for.
    rules = [{"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}]
    later = history + [{"role": role, "content": "x"} for role in ("assistant", "user") * 2]
    counted = [whole(messages=later, system=rules).usage, streamed(messages=later, system=rules).usage]
    same("anthropic: written once", counted[0].cache_creation_input_tokens > 512, True)
    same("anthropic: read ever after", counted[1].cache_read_input_tokens, counted[0].cache_creation_input_tokens)
    fresh = [(usage.cache_read_input_tokens, usage.cache_creation_input_tokens) for usage in counted]
    same("anthropic: not at first, not again", (fresh[0][0], fresh[1][1]), (0, 0))

    turns = history + [{"role": role, "content": "x"} for role in ("assistant", "user") * 3]
    errors(
        "anthropic",
        anthropic,
        lambda: whole(messages=turns),
        lambda: streamed(messages=turns),
        lambda: whole(messages=[{"role": "assistant", "content": "x"}]),
    )


# --- OpenAI ------------------------------------------------------------------------------------------------------


def openai_client():
    return openai.OpenAI(base_url=f"{URL}/v1", api_key="k", max_retries=0)


def chat_client():
    client = openai_client()
    tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES]
    fields = {"model": "gpt-6-sol", "tools": tools}
    history = [{"role": "user", "content": "How is the harbour?"}]

    def streamed(**more):
        options = {"include_usage": True}
        for chunk in client.chat.completions.create(**fields, **more, stream=True, stream_options=options):
            valid("chat chunk", chunk)
        with client.chat.completions.stream(**fields, **more, stream_options=options) as stream:
            for _ in stream:
                pass
            return stream.get_final_completion()

    def whole(**more):
        answer = client.chat.completions.create(**fields, **more)
        valid("chat", answer)
        return answer

    for what, ask in (("chat", whole), ("chat stream", streamed)):
        messages = list(history)
        for reply in SCRIPT[:2]:
            answer = ask(messages=messages)
            choice, usage = answer.choices[0], answer.usage
            calls = choice.message.tool_calls or []
            same(f"{what}: text", choice.message.content, reply["text"])
            same(f"{what}: calls", [(c.function.name, json.loads(c.function.arguments)) for c in calls], calls_of(reply))
            same(f"{what}: stop", choice.finish_reason, "tool_calls" if reply.get("calls") else "stop")
            total, output, read, write, thinking = usage_of(reply)
            same(f"{what}: tokens", (usage.prompt_tokens, usage.completion_tokens), (total, output))
            cached = usage.prompt_tokens_details
            same(f"{what}: cached", (cached.cached_tokens, cached.cache_write_tokens), (read, write))
            same(f"{what}: thought", usage.completion_tokens_details.reasoning_tokens, thinking)
            said = {"role": "assistant", "content": choice.message.content}
            if calls:
                kept = [{"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}} for c in calls]
                said["tool_calls"] = kept
            messages += [said, *({"role": "tool", "tool_call_id": c.id, "content": "ok"} for c in calls)]
            messages += [] if calls else [{"role": "user", "content": "And?"}]
        if what == "chat":
            same(f"{what}: cut", ask(messages=messages).choices[0].finish_reason, "length")
        else:
            raises(f"{what}: cut", openai.LengthFinishReasonError, "length", lambda: ask(messages=messages), fact=False)

    turns = history + [{"role": role, "content": "x"} for role in ("assistant", "user") * 3]
    bare = {"model": "gpt-6-sol", "messages": turns}
    errors(
        "chat",
        openai,
        lambda: client.chat.completions.create(**bare),
        lambda: list(client.chat.completions.create(**bare, stream=True)),
        lambda: client.chat.completions.create(model="gpt-6-sol", messages=[]),
    )


def responses_client():
    client = openai_client()
    tools = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": False} for name in NAMES]
    fields = {"model": "gpt-6-sol", "tools": tools, "store": False, "include": ["reasoning.encrypted_content"]}
    history = [{"role": "user", "content": "How is the harbour?"}]

    def streamed(**more):
        answer, numbers = None, []
        for event in client.responses.create(**fields, **more, stream=True):
            valid("responses event", event)
            numbers.append(event.sequence_number)
            answer = event.response if event.type in ("response.completed", "response.incomplete") else answer
        same("responses stream: numbers", numbers, list(range(len(numbers))), fact=False)
        with client.responses.stream(**fields, **more) as stream:
            for _ in stream:
                pass
            folded = None if answer.status == "incomplete" else stream.get_final_response()
        if folded is not None:
            same("responses stream: text of both ways", folded.output_text, answer.output_text, fact=False)
        return answer

    def whole(**more):
        return client.responses.create(**fields, **more)

    for what, ask in (("responses", whole), ("responses stream", streamed)):
        items = list(history)
        for reply in SCRIPT[:2]:
            answer = ask(input=items)
            valid(what, answer)
            thinking = [i for i in answer.output if i.type == "reasoning"]
            calls = [i for i in answer.output if i.type == "function_call"]
            same(f"{what}: thinking", [i.summary[0].text for i in thinking], thoughts_of(reply))
            same(f"{what}: sealed", all(i.encrypted_content for i in thinking), True)
            same(f"{what}: text", answer.output_text, reply["text"])
            same(f"{what}: calls", [(c.name, json.loads(c.arguments)) for c in calls], calls_of(reply))
            same(f"{what}: stop", answer.status, "completed")
            total, output, read, write, thought = usage_of(reply)
            usage = answer.usage
            same(f"{what}: tokens", (usage.input_tokens, usage.output_tokens), (total, output))
            cached = usage.input_tokens_details
            same(f"{what}: cached", (cached.cached_tokens, cached.cache_write_tokens), (read, write))
            same(f"{what}: thought", usage.output_tokens_details.reasoning_tokens, thought)
            items += [item.model_dump(exclude_unset=True) for item in answer.output]
            items += [{"type": "function_call_output", "call_id": c.call_id, "output": "ok"} for c in calls]
            items += [] if calls else [{"role": "user", "content": "And?"}]
        cut = ask(input=items)
        same(f"{what}: cut", (cut.status, cut.incomplete_details.reason), ("incomplete", "max_output_tokens"))

    later = [{"role": "developer", "content": RULES}] + history
    later += [{"role": role, "content": "x"} for role in ("assistant", "user") * 2]
    counted = [ask(input=later).usage.input_tokens_details for ask in (whole, streamed)]
    same("responses: written once", counted[0].cache_write_tokens > 1024, True)
    same("responses: read ever after", counted[1].cached_tokens, counted[0].cache_write_tokens)
    same("responses: not at first, not again", (counted[0].cached_tokens, counted[1].cache_write_tokens), (0, 0))

    turns = history + [{"role": role, "content": "x"} for role in ("assistant", "user") * 3]
    bare = {"model": "gpt-6-sol", "input": turns}
    errors(
        "responses",
        openai,
        lambda: client.responses.create(**bare),
        lambda: list(client.responses.create(**bare, stream=True)),
        lambda: client.responses.create(model="gpt-6-sol", input=[{"role": "tool", "content": "x"}]),
    )


def errors(what, sdk, whole, streamed, refused):
    """The failures that stand in front of the script's last reply, in their order, and a refusal."""
    limited = raises(f"{what}: 429", sdk.RateLimitError, "ate limit", whole)
    same(f"{what}: 429: wait", limited and limited.response.headers["retry-after"], "2")
    told(what, sdk, streamed)
    raises(f"{what}: 401", sdk.AuthenticationError, "key", whole)
    broken(f"{what}: cut", streamed)
    raises(f"{what}: refused", sdk.BadRequestError, "", refused)


def told(what, sdk, streamed):
    """An error in a stream: raised, or on the responses wire given as the last event."""
    if what == "responses":
        last = streamed()[-1]
        valid(what, last)
        same(f"{what}: error in a stream", (last.type, last.message), ("error", "No room"), fact=False)
    else:
        kind = sdk.APIError if sdk is openai else sdk.APIStatusError
        raises(f"{what}: error in a stream", kind, "No room", streamed, fact=False)


def broken(what, call):
    try:
        call()
    except Exception as error:
        words = "closed" in str(error) or "onnection" in str(error)
        same(f"{what}: told as an error of the connection", words, True, fact=False)
    else:
        same(f"{what}: an error", None, "one of the connection", fact=False)


for client in (anthropic_client, chat_client, responses_client):
    client()
with open(sys.argv[3], "w", encoding="utf-8") as out:
    out.writelines(json.dumps(fact) + "\n" for fact in facts)
print(f"oracle: Python clients: {checks} comparisons, {differences} differences (anthropic {anthropic.__version__}, openai {openai.__version__})")
sys.exit(1 if differences or not checks else 0)
