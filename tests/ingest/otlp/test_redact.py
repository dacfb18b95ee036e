"""What redaction leaves is what a plain walk over protobuf's objects leaves."""

from __future__ import annotations

import hmac
import re
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.disk import RealDisk
from frazil.errors import InvalidSetting
from frazil.ingest.otlp.redact import Redactor, compile_rules, load_hash_key
from frazil.ingest.otlp.scan import scan
from frazil.model import Signal, SystemRand
from frazil.settings import RedactRule
from tests.fuzz.wire import CLASSES
from tests.ingest.otlp.some_requests import requests

KEY = b"k" * 32


def hashed(text: bytes) -> str:
    return hmac.new(KEY, text, "sha256").hexdigest()[:32]


RULES = (
    RedactRule(key="user.email", action="hash"),
    RedactRule(key="password", action="drop"),
    RedactRule(key="é" * 40, action="mask"),
)
CARD, MAIL, SECRET = r"\b\d{16}\b", r"[a-z]+@[a-z.]+", "^secret$"
PATTERNS = (
    RedactRule(pattern=CARD, action="mask"),
    RedactRule(pattern=MAIL, action="hash"),
    RedactRule(pattern=SECRET, action="drop"),
)


def redact_text(text: str, patterns: bool) -> str:
    if patterns:
        text = re.sub(CARD, "***", text, flags=re.ASCII)
        text = re.sub(MAIL, lambda found: hashed(found[0].encode()), text)
        text = re.sub(r"\Asecret\Z", "", text)
    return text


def value_text(value: Any) -> bytes:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return bytes(value.string_value.encode())
    return b"%d" % value.int_value if kind == "int_value" else bytes(value.SerializeToString())


def redact_pairs(pairs: Any) -> None:
    kept = [pair for pair in pairs if pair.key != "password"]
    for pair in kept:
        if pair.key in ("user.email", "é" * 40):
            old = value_text(pair.value)
            pair.value.Clear()
            pair.value.string_value = hashed(old) if pair.key == "user.email" else "***"
            pair.key = f"done {pair.key}"
    del pairs[:]
    pairs.extend(kept)


def redact(message: Message, patterns: bool) -> None:
    """Walk all fields; replaced pairs are marked in their key, and not walked again."""
    name = message.DESCRIPTOR.name
    for field, value in message.ListFields():
        items: Any = value if field.is_repeated else [value]
        if field.message_type is not None:
            if field.message_type.name == "KeyValue":
                redact_pairs(items)
            for item in items:
                if field.message_type.name == "KeyValue" and item.key.startswith("done "):
                    item.key = item.key.removeprefix("done ")
                else:
                    redact(item, patterns)
        elif field.type == field.TYPE_STRING and (name, field.name) != ("KeyValue", "key"):
            setattr(message, field.name, redact_text(value, patterns))
        elif (name, field.name) == ("AnyValue", "bytes_value") and patterns:
            message.bytes_value = redact_text(value.decode(), patterns).encode()  # type: ignore[attr-defined]
        elif (name, field.name) == ("AnyValue", "int_value"):
            text = redact_text(str(value), patterns)
            if text != str(value):
                message.string_value = text  # type: ignore[attr-defined]


@pytest.mark.parametrize("rules", [RULES, PATTERNS, RULES + PATTERNS], ids=["keys", "texts", "all"])
@pytest.mark.parametrize("signal", list(Signal))
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_request_is_redacted_as_protobuf_objects_are(
    signal: Signal, rules: tuple[RedactRule, ...], data: st.DataObject
) -> None:
    request = data.draw(requests(signal))
    body = request.SerializeToString()
    redacted = Redactor(compile_rules(rules), KEY).redact(signal, body)
    wanted = CLASSES[signal].FromString(body)
    if rules == PATTERNS:
        for_patterns_only(wanted)
    else:
        redact(wanted, patterns=len(rules) > len(RULES))
    found = CLASSES[signal].FromString(redacted.body)
    assert found == wanted
    assert scan(signal, redacted.body).record_count == scan(signal, body).record_count
    if found == request:
        assert redacted.body == body
        assert not redacted.counts


def for_patterns_only(message: Message) -> None:
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in value if field.is_repeated else [value]:
                for_patterns_only(item)
        elif (
            field.type == field.TYPE_STRING
            and field.full_name != "opentelemetry.proto.common.v1.KeyValue.key"
        ):
            setattr(message, field.name, redact_text(value, True))
        elif field.name == "bytes_value":
            message.bytes_value = redact_text(value.decode(), True).encode()  # type: ignore[attr-defined]
        elif field.name == "int_value" and redact_text(str(value), True) != str(value):
            message.string_value = redact_text(str(value), True)  # type: ignore[attr-defined]


def body_of(text: str) -> bytes:
    request: Any = CLASSES[Signal.LOGS]()
    records = request.resource_logs.add().scope_logs.add().log_records
    for line in text.split("|"):
        records.add().body.string_value = line
    return bytes(request.SerializeToString())


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        (r"\Aone\z", "one|a one|one", "***|a one|***"),
        (r"(?-m:^one$)", "one|x\none", "***|x\none"),
        (r"^one", "one|x\none", "***|x\none"),
        (r"a\s+b|b c", "a|b c|a b", "a|***|***"),
        (r"(?i)SeCret", "secret|SECRET x", "***|*** x"),
        (r"(?s)a.b", "a\nb|a|b", "***|a|b"),
        (r"(?P<n>é+)", "xéé", "x***"),
        (r"[^a]+", "ab|bb", "a***|***"),
    ],
)
def test_a_pattern_sees_each_text_alone(pattern: str, text: str, wanted: str) -> None:
    rules = compile_rules([RedactRule(pattern=pattern, action="mask")])
    redacted = Redactor(rules, KEY).redact(Signal.LOGS, body_of(text))
    assert redacted.body == body_of(wanted) or CLASSES[Signal.LOGS].FromString(
        redacted.body
    ) == CLASSES[Signal.LOGS].FromString(body_of(wanted))


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a", "missing"),
        ("(?=a)", "not valid"),
        (r"(a)\1", "not valid"),
        ("a*", "empty text"),
        (r"a\C", r"\C"),
        ("((a{1,99}){1,99}){1,99}", "not valid"),
    ],
)
def test_a_bad_pattern_is_refused_with_its_reason(pattern: str, why: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        compile_rules([RedactRule(pattern=pattern, action="mask")])
    assert why in str(caught.value)
    assert repr(pattern) in str(caught.value)


def test_a_pattern_that_would_backtrack_for_ever_does_not() -> None:
    """Python's re needs 2^50 steps for this one, and holds the GIL meanwhile."""
    rules = compile_rules([RedactRule(pattern="(a+)+$", action="mask")])
    text = "a" * 1_000_000 + "!"
    redacted = Redactor(rules, KEY).redact(Signal.LOGS, body_of(text))
    assert not redacted.counts


def test_a_hash_key_is_made_once(tmp_path: Path) -> None:
    disk, rand = RealDisk(tmp_path), SystemRand()
    key = load_hash_key(disk, None, rand)
    assert len(key) == 32
    assert load_hash_key(disk, None, rand) == key
    (tmp_path / "key").write_text("sixteen characters and more\n")
    assert load_hash_key(disk, str(tmp_path / "key"), rand) == b"sixteen characters and more"
    (tmp_path / "short").write_text("short")
    for bad in ("short", "none"):
        with pytest.raises(InvalidSetting, match="redact_key_file"):
            load_hash_key(disk, str(tmp_path / bad), rand)
