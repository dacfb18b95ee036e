"""Our bytes are Kafka's bytes: its Java classes write and read each version of each message."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from random import Random

import pytest

from frazil.errors import Malformed
from frazil.kafka.wire.codec import decode, encode
from frazil.kafka.wire.headers import decode_request, decode_request_header, encode_request
from frazil.kafka.wire.records import decode_key, decode_versioned, encode_key, encode_versioned
from tests.fuzz.kafka_wire import mutate
from tests.kafka.wire.definitions import NO_JARS, headers, missing_jars
from tests.kafka.wire.examples import DEFINITIONS, Examples, class_of, versions_of
from tests.kafka.wire.java import JavaMessages

pytestmark = [
    pytest.mark.skipif(bool(missing_jars()), reason=NO_JARS),
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java here"),
]

EXAMPLES = 3
"""Random messages per version, at least."""
PER_MESSAGE = 12
"""Random messages per message, at least: some have one version."""
MUTATED = 2_000


@pytest.fixture(scope="module")
def java() -> Iterator[JavaMessages]:
    with JavaMessages() as found:
        yield found


def test_every_version_has_the_bytes_of_kafka(java: JavaMessages) -> None:
    random = Random(19)
    for definition in DEFINITIONS.values():
        for version in versions_of(definition):
            for _ in range(max(EXAMPLES, PER_MESSAGE // len(versions_of(definition)))):
                examples = Examples(definition, version, random)
                tree = examples.tree()
                theirs = java.encode(definition, version, tree)
                ours = examples.message(tree)
                assert b"".join(encode(ours, version)) == theirs, (definition.name, version, tree)
                assert decode(class_of(definition), version, theirs) == ours


def test_keys_and_values_of_internal_topics_have_the_prefixes_of_kafka(java: JavaMessages) -> None:
    random = Random(20)
    for definition in DEFINITIONS.values():
        kind = class_of(definition)
        version = versions_of(definition)[-1]
        examples = Examples(definition, version, random)
        tree = examples.tree()
        ours = examples.message(tree)
        if definition.json["type"] == "coordinator-key":
            theirs = java.encode_key(definition, tree)
            assert encode_key(ours) == theirs
            assert decode_key(kind, theirs) == ours
        elif definition.json["type"] not in ("request", "response"):
            theirs = java.encode_versioned(definition, version, tree)
            assert encode_versioned(ours, version) == theirs
            assert decode_versioned(kind, theirs) == ours


@pytest.mark.parametrize("client_id", [None, "", "größe"])
@pytest.mark.parametrize(("version", "header_version"), [(11, 1), (12, 2)])
def test_the_header_of_a_request_has_the_bytes_of_kafka(
    java: JavaMessages, client_id: str | None, version: int, header_version: int
) -> None:
    tree = {
        "requestApiKey": 1,
        "requestApiVersion": version,
        "correlationId": -7,
        "clientId": client_id,
    }
    theirs = java.encode(headers()["RequestHeader"], header_version, tree)
    examples = Examples(DEFINITIONS["FetchRequest"], version, Random(1))
    request = examples.message(examples.tree())
    frame = b"".join(encode_request(request, version, -7, client_id))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert frame[4:].startswith(theirs)
    header = decode_request_header(frame[4:])
    assert header[:4] == (1, version, -7, client_id)
    assert header.size == len(theirs)
    assert decode_request(header, frame[4:]) == request


def test_tagged_fields_of_later_versions_are_skipped(java: JavaMessages) -> None:
    random = Random(21)
    for definition in DEFINITIONS.values():
        if definition.json["flexibleVersions"] != "none":
            version = versions_of(definition)[-1]
            examples = Examples(definition, version, random)
            tree = examples.tree()
            theirs = java.encode_with_unknown_tag(definition, version, tree)
            assert decode(class_of(definition), version, theirs) == examples.message(tree)


def test_what_we_accept_kafka_reads_as_the_same(java: JavaMessages) -> None:
    """Mutated bytes: nothing that we accept is refused, or understood otherwise, by Kafka."""
    random = Random(22)
    choices = [(each, version) for each in DEFINITIONS.values() for version in versions_of(each)]
    accepted = 0
    for _ in range(MUTATED):
        definition, version = random.choice(choices)
        kind = class_of(definition)
        examples = Examples(definition, version, random)
        valid = b"".join(encode(examples.message(examples.tree()), version))
        data = mutate(valid, valid, random)
        try:
            ours = decode(kind, version, data)
        except Malformed:
            continue
        accepted += 1
        theirs = java.read_and_write(definition, version, data)
        assert theirs is not None, (definition.name, version, data)
        # Kafka keeps tagged fields that it does not know, and would send them on.
        again = b"".join(encode(decode(kind, version, theirs), version))
        assert again == b"".join(encode(ours, version)), (definition.name, version, data)
    assert accepted > MUTATED / 20
