"""Every version of every message survives being written and read, and refuses damaged bytes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import Malformed
from frazil.kafka.wire.codec import decode, encode
from tests.fuzz.kafka_wire import run
from tests.kafka.wire.definitions import NO_JARS, missing_jars
from tests.kafka.wire.examples import DEFINITIONS, Examples, class_of, versions_of

pytestmark = pytest.mark.skipif(bool(missing_jars()), reason=NO_JARS)


@pytest.mark.parametrize("name", DEFINITIONS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_is_written_is_read(name: str, seed: int) -> None:
    definition = DEFINITIONS[name]
    for version in versions_of(definition):
        examples = Examples(definition, version, Random(seed))
        message = examples.message(examples.tree())
        data = b"".join(encode(message, version))
        assert decode(class_of(definition), version, data) == message
        # Messages may lie anywhere in a frame.
        assert decode(class_of(definition), version, bytearray(b"abc" + data), 3) == message


@pytest.mark.parametrize("name", DEFINITIONS)
def test_neither_less_nor_more_bytes_are_accepted(name: str) -> None:
    definition = DEFINITIONS[name]
    for version in versions_of(definition):
        examples = Examples(definition, version, Random(version))
        data = b"".join(encode(examples.message(examples.tree()), version))
        kind = class_of(definition)
        for end in sorted({*range(min(len(data), 60)), *range(0, len(data), 37)}):
            with pytest.raises(Malformed):
                decode(kind, version, data[:end])
        with pytest.raises(Malformed, match="1 bytes too many"):
            decode(kind, version, data + b"\0")


def test_the_fuzzer_finds_nothing() -> None:
    """`make fuzz WHAT=kafka_wire` runs it for longer."""
    report = run(5_000, seed=3)
    assert report["disagreements"] == []
    assert report["accepted"], "mutations must not be so rough that all are refused"
