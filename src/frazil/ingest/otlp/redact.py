"""Redactor: hashes, masks or drops values by key or by pattern, before a request is stored.

A key rule replaces the whole value of an attribute, or of a member of a map, anywhere in a request.
A pattern rule replaces the part of a text that matches: values, bodies, names, messages; not keys.

Patterns are those of RE2, which takes time linear in the text: no pattern and no value can stall
the writer, as backtracking could, and it runs without the GIL. All texts of a request are searched
at once, joined by line feeds, in multi-line mode, where a pattern finds at least what it finds in
each text alone. Only texts that a find touches are then searched alone.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from frazil.disk import Disk, read_checkpoint, write_checkpoint
from frazil.errors import InvalidSetting
from frazil.ingest.otlp.redact_walk import (
    HIT_WORDS,
    TEXT_JOINED,
    TEXT_WORDS,
    Places,
    find,
    splice,
)
from frazil.ingest.otlp.scan import TABLES
from frazil.ingest.otlp.scan_walk import Bytes
from frazil.model import Rand, Signal
from frazil.settings import RedactRule

Action = Literal["hash", "mask", "drop"]

MASK = b"***"
HASH_CHARACTERS = 32
"""Hex digits of an HMAC-SHA256, which make 128 bits."""
KEY_BYTES = 32
KEY_FILE_BYTES_MIN = 16
KEY_PATH, KEY_KIND, KEY_VERSION = "redact.ckpt", b"RKEY", 1
KEY_HINT = "Restore it from a backup, or delete it: later hashes will differ from earlier ones."

TEXT_ONLY = re.compile(r"\\[AzQ]|\(\?[a-zA-Z]*-")
"""In a pattern: it may find less in joined texts than in each alone."""
STRING_TAG, INT_TAG = 0x0A, 0x18
"""Of AnyValue.string_value and AnyValue.int_value."""
INT_SIGN = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRules:
    """The rules, checked."""

    keys: tuple[tuple[bytes, Action], ...]
    patterns: tuple[tuple[Any, Action], ...]
    """Compiled by RE2."""
    joined: Any
    """Finds in joined texts what any of the patterns finds; None if it may not."""

    def __bool__(self) -> bool:
        return bool(self.keys or self.patterns)


def compile_rules(rules: Sequence[RedactRule]) -> CompiledRules:
    """Check and compile the rules. Raises `InvalidSetting` for a bad pattern."""
    keys: dict[bytes, Action] = {}
    for rule in rules:
        if rule.key is not None:
            keys.setdefault(rule.key.encode(), rule.action)
    texts = [rule.pattern for rule in rules if rule.pattern is not None]
    patterns = [(_compile(r.pattern), r.action) for r in rules if r.pattern is not None]
    joined = None
    if texts and not any(TEXT_ONLY.search(text) for text in texts):
        joined = _compile("|".join(f"(?m:{text})" for text in texts))
    return CompiledRules(keys=tuple(keys.items()), patterns=tuple(patterns), joined=joined)


def _compile(pattern: str) -> Any:
    import re2  # only nodes with a pattern load it

    if r"\C" in pattern:
        raise InvalidSetting(
            f"the pattern {pattern!r} of a rule of redact has \\C, which could cut a character in "
            "two",
            "redact",
        )
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise InvalidSetting(
            f"the pattern {pattern!r} of a rule of redact is not valid: {reason}; patterns have "
            "RE2's syntax, without look-around and back-references",
            "redact",
        ) from None
    if compiled.search(b"") is not None:
        raise InvalidSetting(
            f"the pattern {pattern!r} of a rule of redact matches the empty text; it must match "
            "at least one character",
            "redact",
        )
    return compiled


def load_hash_key(disk: Disk, path: str | None, rand: Rand) -> bytes:
    """Return the key of hashes: from a file, or from the data folder, made at the first start."""
    if path is not None:
        return read_key_file(path)
    key = read_checkpoint(disk, KEY_PATH, KEY_KIND, KEY_VERSION, KEY_HINT)
    if key is None:
        key = rand.randbytes(KEY_BYTES)
        write_checkpoint(disk, KEY_PATH, KEY_KIND, KEY_VERSION, key)
    return key


def read_key_file(path: str) -> bytes:
    """Return the key in a file. Raises `InvalidSetting` if there is none."""
    try:
        key = Path(path).read_bytes().strip()
    except OSError as error:
        raise InvalidSetting(
            f"ingest.redact_key_file {path} cannot be read: {error.strerror}",
            "ingest.redact_key_file",
        ) from None
    if len(key) < KEY_FILE_BYTES_MIN:
        raise InvalidSetting(
            f"ingest.redact_key_file {path} has {len(key)} bytes; a key needs at least "
            f"{KEY_FILE_BYTES_MIN}",
            "ingest.redact_key_file",
        )
    return key


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A request after redaction."""

    body: bytes
    counts: dict[Action, int]
    """Values and matches that were replaced, by action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    begin: int
    end: int
    field: bytes


class Redactor:
    """Applies the rules. Immutable; any thread may use it."""

    def __init__(self, rules: CompiledRules, hash_key: bytes) -> None:
        self._rules = rules
        self._hash_key = hash_key
        self._keys = np.frombuffer(b"".join(key for key, _ in rules.keys), np.uint8)
        self._key_ends = np.cumsum([len(key) for key, _ in rules.keys], dtype=np.int64)
        # Compile the loops, or load them from disk, so that no request waits.
        self._find(Signal.LOGS, b"")
        _spliced(Signal.LOGS, b"", [])

    def redact(self, signal: Signal, body: bytes) -> Redacted:
        """Return a valid request with all rules applied."""
        hits, texts, joined = self._find(signal, body)
        counts: dict[Action, int] = {"hash": 0, "mask": 0, "drop": 0}
        edits = [self._of_key(body, hit, counts) for hit in hits.tolist()]
        edits += self._of_patterns(body, texts, joined, counts)
        counts = {action: count for action, count in counts.items() if count}
        return Redacted(body=_spliced(signal, body, edits) if edits else body, counts=counts)

    def _find(self, signal: Signal, body: bytes) -> tuple[Places, Places, Bytes]:
        table = TABLES[signal]
        arguments = (
            np.frombuffer(body, np.uint8),
            table.entries,
            table.tag_bits,
            table.pair_row,
            self._keys,
            self._key_ends,
            bool(self._rules.patterns),
        )
        hits, texts = np.empty((0, HIT_WORDS), np.int32), np.empty((0, TEXT_WORDS), np.int32)
        joined = np.empty(0, np.uint8)
        hit_count, text_count, size = find(*arguments, hits, texts, joined)
        if hit_count or text_count:
            hits = np.empty((hit_count, HIT_WORDS), np.int32)
            texts = np.empty((text_count, TEXT_WORDS), np.int32)
            joined = np.empty(size, np.uint8)
            _, _, size = find(*arguments, hits, texts, joined)
        return hits, texts, joined[:size]

    def _of_key(self, body: bytes, hit: list[int], counts: dict[Action, int]) -> _Edit:
        begin, end, value, value_end, rule = hit
        key, action = self._rules.keys[rule]
        counts[action] += 1
        if action == "drop":
            return _Edit(begin=begin, end=end, field=b"")
        new = MASK if action == "mask" else self._hash(_text_of(body[value:value_end]))
        pair = _field(1, key) + _field(2, _field(1, new))
        tag = _tag_of(body, begin)
        return _Edit(begin=begin, end=end, field=tag + _varint(len(pair)) + pair)

    def _of_patterns(
        self, body: bytes, texts: Places, joined: Bytes, counts: dict[Action, int]
    ) -> Iterator[_Edit]:
        if not len(texts):
            return
        searched = joined.tobytes()
        for index in self._candidates(searched, texts):
            begin, content, end, at = texts[index].tolist()
            after = int(texts[index + 1, TEXT_JOINED]) if index + 1 < len(texts) else len(searched)
            old = searched[at : after - 1]
            new = old
            for pattern, action in self._rules.patterns:
                new = self._replaced(pattern, action, new, counts)
            if new != old:
                tag = _tag_of(body, begin)
                if tag[0] == INT_TAG and content == begin + 1:
                    tag = bytes([STRING_TAG])
                yield _Edit(begin=begin, end=end, field=tag + _varint(len(new)) + new)

    def _candidates(self, searched: bytes, texts: Places) -> Iterable[int]:
        """Yield the texts in which a pattern may find something, in order."""
        if self._rules.joined is None:
            yield from range(len(texts))
            return
        starts = texts[:, TEXT_JOINED]
        done = -1
        for found in self._rules.joined.finditer(searched):
            first, last = np.searchsorted(starts, [found.start(), found.end() - 1], "right") - 1
            yield from range(max(done + 1, int(first)), int(last) + 1)
            done = max(done, int(last))

    def _replaced(
        self, pattern: Any, action: Action, text: bytes, counts: dict[Action, int]
    ) -> bytes:
        parts = []
        end = 0
        for found in pattern.finditer(text):
            begin, after = found.span()
            if begin == after:
                continue
            parts += [text[end:begin], self._new(action, text[begin:after])]
            end = after
            counts[action] += 1
        return b"".join([*parts, text[end:]])

    def _new(self, action: Action, old: bytes) -> bytes:
        if action == "hash":
            return self._hash(old)
        return MASK if action == "mask" else b""

    def _hash(self, old: bytes) -> bytes:
        return hmac.digest(self._hash_key, old, "sha256").hex()[:HASH_CHARACTERS].encode()


def _text_of(value: bytes) -> bytes:
    """Return what is hashed of an AnyValue: a text, or an integer as one, so that both hash alike;
    of anything else, its bytes."""
    if not value:
        return value
    number, after = _read_varint(value, 1)
    if value[0] == STRING_TAG and after + number == len(value):
        return value[after:]
    if value[0] == INT_TAG and after == len(value):
        return b"%d" % (number - (number & INT_SIGN) * 2)
    return value


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(data):
        byte = data[at]
        number |= (byte & 127) << shift
        at += 1
        shift += 7
        if byte < 128:
            break
    return number & 2**64 - 1, at


def _tag_of(body: bytes, at: int) -> bytes:
    end = at
    while body[end] >= 128:
        end += 1
    return body[at : end + 1]


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 128:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _spliced(signal: Signal, body: bytes, edits: list[_Edit]) -> bytes:
    edits.sort(key=lambda edit: edit.begin)
    table = TABLES[signal]
    replacements = b"".join(edit.field for edit in edits)
    places = np.empty((len(edits), 3), np.int64)
    places[:, 0] = [edit.begin for edit in edits]
    places[:, 1] = [edit.end for edit in edits]
    places[:, 2] = np.cumsum([len(edit.field) for edit in edits])
    # Each length may become four bytes longer, and a message has at least two bytes.
    output = np.empty(3 * len(body) + len(replacements), np.uint8)
    written = splice(
        np.frombuffer(body, np.uint8),
        table.entries,
        table.tag_bits,
        places,
        np.frombuffer(replacements, np.uint8),
        output,
    )
    return output[:written].tobytes()
