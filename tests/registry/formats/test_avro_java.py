"""Apache Avro's own Java classes are the judge: texts, what is valid, and what can read what."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyspark
import pytest
from py4j import java_gateway
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError, get_return_value

from frazil.errors import Malformed
from frazil.registry.formats.parse import parse, unreadable
from tests.kafka.wire.java import QUICK
from tests.registry.formats.avro_pairs import AvroSchemas

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java here")

PAIRS = 500
JARS = Path(pyspark.__file__).parent / "jars"
NEEDED = ("avro-1.", "jackson-core-2", "jackson-databind-2", "jackson-annotations-2", "slf4j-api-")
ODD = [
    *('"nothing"', '{"type":"array"}', "[]", '["int","int"]', '["int",["long"]]', "5", "{}"),
    '{"type":"record","name":"R"}',
    '{"type":"record","name":"1R","fields":[]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":5000000000}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":["null","int"],"default":1}]}',
    '{"type":"record","name":"R","fields":[{"name":"a"}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"Later"}]}',
    '{"type":"enum","name":"E","symbols":["A","A"]}',
    '{"type":"enum","name":"E","symbols":["A"],"default":"B"}',
    '{"type":"enum","name":"E","symbols":["a-b"]}',
    '{"type":"fixed","name":"F"}',
    '{"type":"fixed","name":"F","size":"4"}',
    '{"type":"map","values":{"type":"fixed","name":"n.F","size":4}}',
    '{"type":{"type":"string"}}',
    '{"type":"int","logicalType":"date"}',
    '{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}',
    '{"type":"record","name":"a.R","fields":[{"name":"x","type":{"type":"record","name":"S",'
    '"namespace":"","fields":[{"name":"r","type":["null","a.R"]}]}}]}',
    '{"type":"record","name":"a.R","doc":"d","aliases":["Q","b.P"],"custom":{"z":1,"a":2},'
    '"fields":[{"name":"x","type":"int","order":"IGNORE","aliases":["y"],"extra":true}]}',
    '{"type":"record","name":"R","fields":[{"name":"r","type":{"type":"array","items":"R"},'
    '"default":[]}]}',
]


class JavaAvro:
    """Avro's classes in a JVM. A context: it owns the JVM."""

    def __init__(self) -> None:
        (py4j,) = JARS.glob("py4j-*.jar")
        jars = [str(path) for path in JARS.glob("*.jar") if path.name.startswith(NEEDED)]
        self._gateway: Any = JavaGateway.launch_gateway(
            jarpath=str(py4j), classpath=":".join(jars), javaopts=QUICK, die_on_exit=True
        )
        self._avro = self._gateway.jvm.org.apache.avro

    def __enter__(self) -> JavaAvro:
        return self

    def __exit__(self, *_: object) -> None:
        self._gateway.shutdown()

    def parse(self, text: str) -> Any:
        """Return the schema, None if it is invalid."""
        try:
            return self._avro.Schema.Parser().parse(text)
        except Py4JJavaError:
            return None

    def reads(self, reader: Any, writer: Any) -> bool:
        try:
            checked = self._avro.SchemaCompatibility.checkReaderWriterCompatibility(reader, writer)
        except Py4JJavaError:  # a field and its aliases are several fields of the writer
            return False
        return bool(checked.getType().toString() == "COMPATIBLE")


@pytest.fixture(scope="module")
def java() -> Iterator[JavaAvro]:
    """PySpark, once it has run in this process, takes all errors of py4j for those of its JVM."""
    plain = mock.patch.object(java_gateway, "get_return_value", get_return_value)
    with plain, JavaAvro() as opened:
        yield opened


def test_verdicts_are_those_of_avro(java: JavaAvro) -> None:
    """In both directions of each pair; and the stored text is what Avro prints."""
    verdicts: Counter[bool] = Counter()
    for number, (one, other) in enumerate(AvroSchemas(7).pairs(PAIRS)):
        theirs = [java.parse(text) for text in (one, other)]
        assert (None in theirs) == any(not _is_valid(text) for text in (one, other)), (one, other)
        if None in theirs:
            continue
        ours = [parse("AVRO", text, [], is_new=True) for text in (one, other)]
        for schema, their in zip(ours, theirs, strict=True):
            assert json.loads(schema.text) == json.loads(their.toString())
            assert list(_keys(schema.text)) == list(_keys(their.toString())), schema.text
        for reader, writer in ((0, 1), (1, 0)):
            reasons = unreadable(ours[reader], ours[writer])
            expected = java.reads(theirs[reader], theirs[writer])
            assert (not reasons) is expected, (number, one, other, reader, reasons)
            verdicts[expected] += 1
    assert min(verdicts[True], verdicts[False]) > PAIRS // 3, verdicts


@pytest.mark.parametrize("text", ODD)
def test_what_is_valid_is_what_avro_parses(java: JavaAvro, text: str) -> None:
    theirs = java.parse(text)
    assert _is_valid(text) == (theirs is not None)
    if theirs is not None:
        assert parse("AVRO", text, [], is_new=True).text == theirs.toString()


def _is_valid(text: str) -> bool:
    try:
        parse("AVRO", text, [], is_new=True)
    except Malformed:
        return False
    return True


def _keys(text: str) -> Iterator[str]:
    """Yield the names of all attributes in their order."""
    for names in json.JSONDecoder(object_pairs_hook=lambda pairs: pairs).decode(text):
        yield repr(names)
