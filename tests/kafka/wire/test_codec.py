"""Rules of the codecs, one by one: versions, limits, hostile lengths, record bytes."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import pytest

from frazil.errors import Malformed
from frazil.kafka.wire.codec import decode, encode
from frazil.kafka.wire.headers import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from frazil.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from frazil.kafka.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from frazil.kafka.wire.messages.control_records import EndTxnMarker
from frazil.kafka.wire.messages.fetch import FetchRequest, FetchResponse
from frazil.kafka.wire.messages.group_records import RECORDS, OffsetCommitKey
from frazil.kafka.wire.messages.heartbeat import HeartbeatRequest
from frazil.kafka.wire.messages.metadata import MetadataRequest
from frazil.kafka.wire.messages.produce import ProduceRequest
from frazil.kafka.wire.primitives import ELEMENTS_MAX, uvarint_bytes
from frazil.kafka.wire.records import decode_key, decode_versioned, encode_key, prefix_of
from frazil.model import MiB


def fetched(records: bytes) -> FetchResponse:
    partition = FetchResponse.PartitionData(partition_index=3, high_watermark=9, records=records)
    topic = FetchResponse.FetchableTopicResponse(topic="orders", partitions=[partition])
    return FetchResponse(throttle_time_ms=5, responses=[topic])


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_records_are_not_copied(version: int) -> None:
    records = bytes(range(256))
    chunks = encode_response(fetched(records), version, 77)
    assert any(chunk is records for chunk in chunks)
    frame = b"".join(chunks)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    correlation_id, found = decode_response(FetchResponse, version, frame[4:])
    assert correlation_id == 77
    read = found.responses[0].partitions[0].records
    assert isinstance(read, memoryview)
    assert read == records
    assert read.obj is not None
    assert isinstance(read.obj, bytes), "a view of the frame itself"


def test_the_header_of_an_api_versions_response_is_always_the_oldest() -> None:
    """A client reads it before it knows the versions of the server."""
    frame = b"".join(encode_response(ApiVersionsResponse(error_code=35), 4, 9))
    assert frame[4:10] == bytes([0, 0, 0, 9, 0, 35])
    assert decode_response(ApiVersionsResponse, 4, frame[4:]) == (
        9,
        ApiVersionsResponse(error_code=35),
    )


@pytest.mark.parametrize(("key", "version"), [(18, 99), (999, 0), (0, 2), (-1, -1)])
def test_the_header_of_an_unknown_request_is_read(key: int, version: int) -> None:
    """The client is told that it is unknown, and that needs the correlation id."""
    frame = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    frame += bytes([0, 0, 0, 9, 0, 1]) + b"c\0" + b"whatever"
    header = decode_request_header(frame)
    assert header[:4] == (key, version, 9, "c")
    with pytest.raises(Malformed, match=r"no API|no version"):
        decode_request(header, frame)


def test_a_field_that_a_version_lacks_is_left_out_or_refused() -> None:
    """As Kafka decides for each field: those that may be ignored, and those that may not."""
    assert encode(FetchRequest(rack_id="a"), 4) == encode(FetchRequest(), 4)
    forgotten = FetchRequest(forgotten_topics_data=[FetchRequest.ForgottenTopic(topic="a")])
    with pytest.raises(Malformed, match=r"version 4 of FetchRequest has no .*forgotten_topics"):
        encode(forgotten, 4)
    encode(forgotten, 7)


def test_null_only_where_a_version_has_it() -> None:
    assert (
        decode(MetadataRequest, 1, b"".join(encode(MetadataRequest(topics=None), 1))).topics is None
    )
    with pytest.raises(Malformed, match="topics cannot be None"):
        encode(MetadataRequest(topics=None), 0)
    with pytest.raises(Malformed, match="topics cannot have -1 elements"):
        decode(MetadataRequest, 0, b"\xff\xff\xff\xff")
    with pytest.raises(Malformed, match="group_id cannot have length -1"):
        decode(HeartbeatRequest, 0, b"\xff\xff" + bytes(6))
    with pytest.raises(Malformed, match="group_id cannot have length -1"):
        decode(HeartbeatRequest, 4, bytes(12))


@pytest.mark.parametrize(
    ("message", "version", "wanted"),
    [
        (HeartbeatRequest(group_id="a" * 40_000), 0, "40000 bytes; the maximum is 32767"),
        (HeartbeatRequest(group_id="a" * 40_000), 4, "40000 bytes; the maximum is 32767"),
        (HeartbeatRequest(generation_id=2**31), 0, "cannot be written"),
        (HeartbeatRequest(group_id="\ud800"), 0, "cannot be written"),
        (FetchRequest(topics=[FetchRequest.FetchTopic(topic_id=b"short")]), 13, "not 16 bytes"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    message: HeartbeatRequest | FetchRequest, version: int, wanted: str
) -> None:
    with pytest.raises(Malformed, match=wanted):
        encode(message, version)


def test_a_count_is_compared_with_the_bytes_before_anything_is_made() -> None:
    """A frame of a few bytes that claims two thousand million topics."""
    claims = [b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f"]
    tracemalloc.start()
    for claim in claims:
        with pytest.raises(Malformed, match=r"cannot have .* elements"):
            decode(MetadataRequest, 9, claim + bytes(100))
    with pytest.raises(Malformed, match="cannot have 2147483647 elements"):
        decode(MetadataRequest, 1, b"\x7f\xff\xff\xff" + bytes(100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 * MiB


def test_the_elements_of_a_message_are_limited_in_all_arrays_together() -> None:
    """Tiny elements are a hundred times larger as objects than as bytes."""
    empty = b"\x01\x01\x00"
    head = b"\x00\xff\xff" + bytes(4)

    def topics(count: int) -> bytes:
        return head + uvarint_bytes(count + 1) + empty * count + b"\0"

    assert len(decode(ProduceRequest, 9, topics(ELEMENTS_MAX)).topic_data) == ELEMENTS_MAX
    with pytest.raises(Malformed, match=str(ELEMENTS_MAX)):
        decode(ProduceRequest, 9, topics(ELEMENTS_MAX + 1))
    partition = bytes(4) + b"\x00\x00"
    inner = b"\x01" + uvarint_bytes(ELEMENTS_MAX // 2 + 1) + partition * (ELEMENTS_MAX // 2) + b"\0"
    with pytest.raises(Malformed, match=str(ELEMENTS_MAX)):
        decode(ProduceRequest, 9, head + b"\x03" + inner * 2 + b"\0")


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"\x00\x02\xff\xfe" + bytes(8), "not UTF-8"),
        (b"\x7f\xff" + bytes(8), "cannot have length 32767"),
        (b"\xff\xfe" + bytes(8), "cannot have length -2"),
        (b"", "end too early"),
        (bytes(9), "1 bytes too many"),
    ],
)
def test_bytes_that_make_no_sense_are_refused(data: bytes, wanted: str) -> None:
    with pytest.raises(Malformed, match=wanted):
        decode(HeartbeatRequest, 0, data)


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        (b"\x01\x00\x05\x00", "length it says|beyond the end"),
        (b"\x01\x00\x02\x00\x00", "does not have the length it says"),
        (b"\xff\xff\xff\xff\x0f", "4294967295 elements"),
        (uvarint_bytes(ELEMENTS_MAX + 1) + b"\x09\x00" * (ELEMENTS_MAX + 1), "elements"),
        (b"\x7f\x09\x00", "end too early"),
        (b"\xff\xff\xff\xff\xff\x01", "more than 32 bits"),
        (b"\xff\xff\xff\xff\x1f", "more than 32 bits"),
        (b"\x01\x07\xff\xff\xff\xff\x0f", "length it says|beyond the end"),
    ],
)
def test_tagged_fields_that_make_no_sense_are_refused(tags: bytes, wanted: str) -> None:
    """The last byte of a message without tagged fields is the count of them."""
    data = b"".join(encode(FetchRequest(), 12))[:-1]
    with pytest.raises(Malformed, match=wanted):
        decode(FetchRequest, 12, data + tags)


def test_unknown_tagged_fields_are_limited_too() -> None:
    """Skipping millions of them would keep the port from everything else."""
    data = b"".join(encode(HeartbeatRequest(), 4))[:-1]
    tag = b"\x09\x00"
    decode(HeartbeatRequest, 4, data + uvarint_bytes(ELEMENTS_MAX) + tag * ELEMENTS_MAX)
    count = ELEMENTS_MAX + 1
    with pytest.raises(Malformed, match=f"{count} elements"):
        decode(HeartbeatRequest, 4, data + uvarint_bytes(count) + tag * count)


def test_a_compact_text_has_the_maximum_of_an_old_one() -> None:
    """Otherwise the port would accept names that it cannot send to an older client."""
    rest = b"".join(encode(HeartbeatRequest(), 4))[1:]
    longest = decode(HeartbeatRequest, 4, uvarint_bytes(32_768) + b"a" * 32_767 + rest)
    assert longest.group_id == "a" * 32_767
    with pytest.raises(Malformed, match="cannot have length 32768"):
        decode(HeartbeatRequest, 4, uvarint_bytes(32_769) + b"a" * 32_768 + rest)


def test_the_request_of_a_client_is_the_request_of_the_server() -> None:
    request = ApiVersionsRequest(client_software_name="frazil", client_software_version="1")
    frame = b"".join(encode_request(request, 3, 5, None))[4:]
    header = decode_request_header(frame)
    assert header[:4] == (18, 3, 5, None)
    assert decode_request(header, frame) == request


def test_a_newer_subscription_is_read_as_the_last_known_version() -> None:
    """Consumers of one group may have different versions."""
    known = ConsumerProtocolSubscription(topics=["a"], generation_id=4, rack_id="r")
    data = b"\x00\x63" + b"".join(encode(known, 3)) + b"something newer"
    assert decode_versioned(ConsumerProtocolSubscription, data, is_newer_allowed=True) == known
    with pytest.raises(Malformed, match="no version 99"):
        decode_versioned(ConsumerProtocolSubscription, data)


def test_records_of_internal_topics_name_their_type() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=2)
    data = encode_key(key)
    assert RECORDS[prefix_of(data)][0] is OffsetCommitKey
    assert decode_key(OffsetCommitKey, data) == key
    with pytest.raises(Malformed, match="type 2 is no OffsetCommitKey"):
        decode_key(OffsetCommitKey, b"\x00\x02" + data[2:])
    with pytest.raises(Malformed, match="too few"):
        prefix_of(b"\x00")
    assert decode_versioned(EndTxnMarker, bytes([0, 0, 0, 0, 0, 7])).coordinator_epoch == 7


def test_messages_are_imported_when_they_are_used() -> None:
    """The port knows all APIs and their versions without the classes of those it does not offer."""
    script = (
        "import sys; import frazil.kafka.wire.headers;"
        "sys.stdout.write(str([m for m in sys.modules if m.endswith('.push_telemetry')]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]"


def test_the_code_of_a_codec_can_be_shown() -> None:
    command = [sys.executable, "-m", "frazil.kafka.wire"]
    shown = subprocess.run(
        [*command, "decode", "FetchRequest", "12"], capture_output=True, text=True, timeout=60
    )
    assert shown.stdout.startswith("def decode(view, at, end, is_whole):")
    wrong = subprocess.run(
        [*command, "decode", "FetchRequest", "99"], capture_output=True, text=True, timeout=60
    )
    assert wrong.returncode == 2
    assert "usage" in wrong.stderr
