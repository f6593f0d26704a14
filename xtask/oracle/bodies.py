"""Bodies of requests that our encoders wrote, against the types of the official clients.

Called by `cargo xtask oracle` as `bodies.py FILE`, one JSON object a line: {"format", "name", "body"}, or
{"format", "absent": true} for a format that the build does not have. Exits with 1 on any difference.
"""

import json
import sys
import typing

# The clients take any iterable and pydantic looks into one only when it is consumed; a request holds lists.
typing.Iterable = typing.List

import importlib
import pkgutil
import types as kinds

import anthropic.types
import openai.types
import typing_extensions
from pydantic import TypeAdapter, ValidationError


# Fields that the types of the client lack, each with the reason why it is sent all the same.
KNOWN = {
    ("anthropic", "temperature"): "this client has dropped it, older models take it; profiles say which do not",
}


def strict():
    """Makes every type of a request refuse fields it does not have."""
    for package in (anthropic.types, openai.types):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)
    for name, module in list(sys.modules.items()):
        if not name.startswith(("anthropic.types", "openai.types")):
            continue
        # Files and sequences in the client's own words: in JSON they are strings and lists.
        for word, plain in (("Base64FileInput", str), ("SequenceNotStr", typing.List)):
            if word in vars(module):
                setattr(module, word, plain)
        for value in list(vars(module).values()):
            if typing_extensions.is_typeddict(value):
                value.__pydantic_config__ = {"extra": "forbid"}


def adapters():
    from anthropic.types import message_create_params as messages
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import response_create_params as responses

    pairs = {
        "anthropic": (messages.MessageCreateParamsNonStreaming, messages.MessageCreateParamsStreaming),
        "openai-chat": (chat.CompletionCreateParamsNonStreaming, chat.CompletionCreateParamsStreaming),
        "openai-responses": (responses.ResponseCreateParamsNonStreaming, responses.ResponseCreateParamsStreaming),
    }
    return {name: tuple(TypeAdapter(kind) for kind in pair) for name, pair in pairs.items()}


def lazy(value, path="body"):
    """Parts that pydantic did not look into."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from lazy(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from lazy(item, f"{path}.{index}")
    elif not isinstance(value, (str, int, float, bool, kinds.NoneType)):
        yield f"{path} is a {type(value).__name__}, which was not looked into"


def faults(adapter, body):
    try:
        return list(lazy(adapter.validate_python(body)))
    except ValidationError as error:
        # A union tells what each of its members misses: the deepest places are about the intended one.
        found = sorted(error.errors(include_url=False), key=lambda fault: -len(fault["loc"]))
        return [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in found]


def self_test(types):
    """A check that cannot fail proves nothing."""
    good = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}
    plain, _ = types["anthropic"]
    assert faults(plain, good) == [], faults(plain, good)
    for broken in ({**good, "made_up": 1}, {"model": "m"}, {**good, "messages": [{"role": "user", "content": [{"type": "text", "txt": "a"}]}]}):
        assert faults(plain, broken), f"{broken} was taken"


strict()
types = adapters()
self_test(types)
checked, differences = {}, 0
for line in open(sys.argv[1], encoding="utf-8"):
    row = json.loads(line)
    name = row["format"]
    if row.get("absent"):
        print(f"oracle: {name}: this build does not have the format, passed over")
        continue
    if name not in types:
        print(f"oracle: {name}: no official client here speaks it, passed over")
        continue
    body = row["body"]
    for field in [field for field in body if (name, field) in KNOWN]:
        print(f"oracle: {name}: {row['name']}: {field} is known: {KNOWN[name, field]}")
        del body[field]
    found = faults(types[name][body.get("stream") is True], body)
    checked[name] = checked.get(name, 0) + 1
    if found:
        differences += 1
        print(f"oracle: {name}: {row['name']}: {json.dumps(body)[:2000]}")
        for fault in found[:12]:
            print(f"  {fault}")
counts = ", ".join(f"{count} of {name}" for name, count in checked.items())
print(f"oracle: bodies: {counts or 'none'}; {differences} with differences")
sys.exit(1 if differences or not checked else 0)
