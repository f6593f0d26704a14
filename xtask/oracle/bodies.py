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
import re
import types as kinds

import anthropic.types
import openai.types
import typing_extensions
from pydantic import TypeAdapter, ValidationError


# What the types of a client refuse and its service takes: format, the fault as told below, and the reason.
KNOWN = [
    (
        "anthropic",
        r"^(temperature|top_p|top_k): Extra inputs",
        "this client has dropped all sampling, older models take it; profiles say which do not",
    ),
    ("openai-responses", r"\.detail: Field required$", "the client's own words call `auto` the default"),
    (
        "openai-responses",
        r"\.content\.\d+\.annotations: Field required$",
        "the service takes words of the model without them, as recorded exchanges show",
    ),
]


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
        return [told(fault) for fault in narrowed(error.errors(include_url=False))]


# Members of unions, which pydantic puts between the fields of a place.
MEMBER = re.compile(r"^[A-Z]|[\[\]]|^(str|int|float|bool|none|dict|literal)$")


def told(fault):
    place = [str(part) for part in fault["loc"] if not MEMBER.search(str(part))]
    return f"{'.'.join(place)}: {fault['msg']}"


def narrowed(found, depth=0):
    """Of a union pydantic tells what each member misses; only the member that was meant is of interest."""
    groups = {}
    for fault in found:
        groups.setdefault(fault["loc"][depth] if len(fault["loc"]) > depth else None, []).append(fault)
    members = [part for part in groups if isinstance(part, str) and MEMBER.search(part)]
    meant = min(members, key=lambda member: distance(groups[member], depth + 1), default=None)
    for part, faults_there in groups.items():
        if part is None:
            yield from faults_there
        elif part == meant or part not in members:
            yield from narrowed(faults_there, depth + 1)


def distance(found, depth):
    """How far a member is from what was meant: another type of block, or of value, is not it at all."""
    wrong = sum(len(fault["loc"]) == depth or fault["loc"][depth:] in (("type",), ("role",)) for fault in found)
    return wrong, len(found)


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
checked, told_of = {}, {}
for line in open(sys.argv[1], encoding="utf-8"):
    row = json.loads(line)
    name = row["format"]
    if row.get("absent"):
        print(f"oracle: {name}: this build does not have the format, passed over")
        continue
    if name not in types:
        print(f"oracle: {name}: no official client here speaks it, passed over")
        continue
    checked[name] = checked.get(name, 0) + 1
    for fault in faults(types[name][row["body"].get("stream") is True], row["body"]):
        told_of.setdefault((name, fault), []).append(row["name"])
differences = 0
for (name, fault), bodies in told_of.items():
    reason = next((why for format, pattern, why in KNOWN if format == name and re.search(pattern, fault)), None)
    differences += reason is None
    print(f"oracle: {name}: {fault}{f' (known: {reason})' if reason else ''}; in: {'; '.join(bodies)}")
counts = ", ".join(f"{count} of {name}" for name, count in checked.items())
print(f"oracle: bodies: {counts or 'none'}; {differences} differences, {len(told_of) - differences} known ones")
sys.exit(1 if differences or not checked else 0)
