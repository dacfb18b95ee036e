"""The registry over a real log: ids, versions, deletion, levels, modes, references, races."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from frazil.disk import RealDisk
from frazil.log import Log, Record, append_of_records
from frazil.model import SystemClock
from frazil.registry import (
    CompatibilityLevel,
    Registry,
    RegistryError,
    RegistryErrorCode,
    RegistryMode,
    SchemaReference,
    SchemaType,
)
from tests.registry.opened import given, opened_registry, record, register

THREADS, SCHEMAS = 4, 25


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with opened_registry(tmp_path / "data") as opened:
        yield opened


def code_of(error: pytest.ExceptionInfo[RegistryError]) -> RegistryErrorCode:
    return error.value.code


def test_ids_versions_and_what_is_equal(registry: Registry) -> None:
    """Equal schemas have one id in all subjects, whatever their white space; a text that is there
    already is not registered again."""
    first = register(registry, "a", record("R", "x"))
    again = register(registry, "a", record("R", "x").replace(",", ", "))
    assert (first.schema_id, first.version) == (1, 1)
    assert again == first
    assert register(registry, "b", record("R", "x")).schema_id == 1
    second = register(registry, "a", record("R", "x", "y"))
    assert (second.schema_id, second.version) == (2, 2)
    assert registry.look_up("a", given(record("R", "x"))).version == 1
    users = registry.read(lambda state: state.of_id(1))
    assert [(each.subject, each.version) for each in users] == [("a", 1), ("b", 1)]
    with pytest.raises(RegistryError) as error:
        registry.look_up("a", given('"int"'))
    assert code_of(error) is RegistryErrorCode.SCHEMA_NOT_FOUND


def test_what_was_deleted_and_for_good(registry: Registry) -> None:
    """Softly deleted versions keep their numbers and ids; those deleted for good are gone, and
    their ids are never given again."""
    for fields in ("x", "xy", "xyz"):
        register(registry, "a", record("R", *fields))
    with pytest.raises(RegistryError) as error:
        registry.delete_version("a", 2, permanent=True)
    assert code_of(error) is RegistryErrorCode.VERSION_NOT_SOFT_DELETED
    assert registry.delete_version("a", 2, permanent=False) == 2
    assert registry.delete_version("a", 2, permanent=True) == 2
    assert registry.delete_subject("a", permanent=False) == [1, 3]
    assert registry.read(lambda state: state.subjects()) == []
    with pytest.raises(RegistryError) as error:
        registry.delete_subject("a", permanent=False)
    assert code_of(error) is RegistryErrorCode.SUBJECT_SOFT_DELETED
    back = register(registry, "a", record("R", "x"))
    assert (back.schema_id, back.version) == (1, 4)
    registry.delete_subject("a", permanent=False)
    assert registry.delete_subject("a", permanent=True) == [1, 3, 4]
    assert registry.read(lambda state: state.subjects(deleted=True)) == []
    anew = register(registry, "a", record("R", "x"))
    assert (anew.schema_id, anew.version) == (4, 1)


def test_a_restart_reads_the_same_and_reuses_no_id(tmp_path: Path) -> None:
    """Also an id that no record has any more."""
    with opened_registry(tmp_path / "data") as registry:
        register(registry, "a", '"int"')
        registry.set_level("a", CompatibilityLevel.FULL)
        registry.set_mode("b", RegistryMode.READONLY, force=False)
        assert register(registry, "c", '"long"').schema_id == 2
        registry.delete_subject("c", permanent=False)
        registry.delete_subject("c", permanent=True)
    with opened_registry(tmp_path / "data") as registry:
        assert registry.read(lambda state: state.level("a")) is CompatibilityLevel.FULL
        assert registry.read(lambda state: state.mode("b")) is RegistryMode.READONLY
        assert register(registry, "a", '"int"').schema_id == 1
        assert register(registry, "d", '"double"').schema_id == 3


@pytest.mark.parametrize(
    ("level", "allowed"),
    [
        # Version 1 is {x}, version 2 is {x, y}; what may follow?
        ("NONE", "bare more less required text"),
        ("BACKWARD", "bare more less"),
        ("BACKWARD_TRANSITIVE", "bare more less"),
        ("FORWARD", "bare more less required"),
        ("FORWARD_TRANSITIVE", "bare more less required"),
        ("FULL", "bare more less"),
        ("FULL_TRANSITIVE", "bare more less"),
    ],
)
def test_levels(registry: Registry, level: str, allowed: str) -> None:
    register(registry, "a", record("R", "x"))
    register(registry, "a", record("R", "x", "y"))
    registry.set_level(None, CompatibilityLevel(level))
    candidates = {
        "bare": record("R"),
        "more": record("R", "x", "y", "z"),
        "less": record("R", "y"),
        "required": record("R", "x", "y", "z").replace(
            '"name":"z","type":"int","default":0', '"name":"z","type":"int"'
        ),
        "text": '"string"',
    }
    found = {
        name
        for name, text in candidates.items()
        if not registry.compatibility("a", given(text), None)
    }
    assert found == set(allowed.split())


def test_transitive_levels_look_further_back(registry: Registry) -> None:
    """int, then long: a long cannot be read as int by version 1. A double reads both."""
    registry.set_level("a", CompatibilityLevel.NONE)
    for text in ('"string"', '"int"', '"long"'):
        register(registry, "a", text)
    for level, is_allowed in (("BACKWARD", True), ("BACKWARD_TRANSITIVE", False)):
        registry.set_level("a", CompatibilityLevel(level))
        assert (not registry.compatibility("a", given('"double"'), None)) is is_allowed
        assert not registry.compatibility("a", given('"double"'), None, latest=True)
    with pytest.raises(RegistryError) as error:
        register(registry, "a", '"double"')
    assert code_of(error) is RegistryErrorCode.INCOMPATIBLE
    assert "string" in str(error.value)


def test_modes(registry: Registry) -> None:
    """Nothing is written while reading only; an import brings its own ids and versions."""
    register(registry, "a", '"int"')
    registry.set_mode(None, RegistryMode.READONLY, force=False)
    registry.set_mode("free", RegistryMode.READWRITE, force=False)
    register(registry, "free", '"int"')
    for change in (
        lambda: register(registry, "a", '"long"'),
        lambda: registry.delete_subject("a", permanent=False),
        lambda: registry.set_level("a", CompatibilityLevel.NONE),
    ):
        with pytest.raises(RegistryError) as error:
            change()
        assert code_of(error) is RegistryErrorCode.NOT_PERMITTED
    registry.set_mode(None, RegistryMode.READONLY_OVERRIDE, force=False)
    with pytest.raises(RegistryError):
        register(registry, "free", '"long"')
    registry.set_mode(None, None, force=False)
    with pytest.raises(RegistryError, match="existing subjects"):
        registry.set_mode("a", RegistryMode.IMPORT, force=False)
    registry.set_mode("new", RegistryMode.IMPORT, force=False)
    with pytest.raises(RegistryError, match="not in read-write mode"):
        register(registry, "new", '"float"')
    imported = register(registry, "new", '"float"', schema_id=77, version=9)
    assert (imported.schema_id, imported.version) == (77, 9)
    with pytest.raises(RegistryError, match="id 77 is not permitted"):
        register(registry, "new", '"bytes"', schema_id=77, version=10)
    with pytest.raises(RegistryError, match="not in import mode"):
        register(registry, "a", '"long"', schema_id=5)
    assert register(registry, "a", '"long"').schema_id == 78


def test_references(registry: Registry) -> None:
    """What is used resolves by its name, also through others, and is not deleted meanwhile."""
    register(registry, "item", '{"type":"record","name":"shop.Item","fields":[]}')
    item = SchemaReference(name="shop.Item", subject="item", version=-1)
    text = '{"type":"record","name":"Order","fields":[{"name":"i","type":"shop.Item"}]}'
    with pytest.raises(RegistryError, match="undefined name"):
        register(registry, "order", text)
    order = register(registry, "order", text, references=(item,))
    assert order.content.references[0].version == 1
    with pytest.raises(RegistryError) as error:
        registry.delete_subject("item", permanent=False)
    assert code_of(error) is RegistryErrorCode.REFERENCE_EXISTS
    missing = SchemaReference(name="x", subject="nowhere", version=1)
    with pytest.raises(RegistryError, match="which is not registered"):
        register(registry, "order", text, references=(missing,))

    proto = 'syntax = "proto3"; package shop; message Item { int32 n = 1; }'
    register(registry, "item.proto", proto, kind=SchemaType.PROTOBUF)
    used = SchemaReference(name="item.proto", subject="item.proto", version=1)
    text = 'syntax = "proto3"; import "item.proto"; message Cart { repeated shop.Item items = 1; }'
    register(registry, "cart", text, kind=SchemaType.PROTOBUF, references=(used,))
    with pytest.raises(RegistryError, match=r"imports item\.proto"):
        register(registry, "cart", text, kind=SchemaType.PROTOBUF)

    register(registry, "item.json", '{"type":"string"}', kind=SchemaType.JSON)
    used = SchemaReference(name="item.json", subject="item.json", version=1)
    for number, kind in ((1, "integer"), (2, "string")):
        text = f'{{"properties":{{"i":{{"$ref":"item.json"}},"n":{{"type":"{kind}"}}}}}}'
        more = {"kind": SchemaType.JSON, "references": (used,)}
        if number == 1:
            register(registry, "cart.json", text, **more)
        else:
            with pytest.raises(RegistryError, match="TYPE_CHANGED"):
                register(registry, "cart.json", text, **more)


def test_registries_that_race_agree(tmp_path: Path) -> None:
    """Two nodes' worth of registries over one log, each with its own counter of ids, and clients
    that register the same schemas in other orders: one id and one version for each schema."""
    clock = SystemClock()
    with Log.open(RealDisk(tmp_path / "data"), clock=clock, rand=random.SystemRandom()) as log:
        registries = [
            Registry.open(RealDisk(tmp_path / f"node{number}"), log, clock=clock)
            for number in range(2)
        ]
        registries[0].set_level("all", CompatibilityLevel.NONE)
        found: list[dict[str, tuple[int, int]]] = [{} for _ in range(THREADS)]

        def work(number: int) -> None:
            texts = [record(f"R{each}") for each in range(SCHEMAS)]
            random.Random(number).shuffle(texts)
            for text in texts:
                version = register(registries[number % 2], "all", text)
                found[number][text] = version.schema_id, version.version

        threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for registry in registries:
            registry.close()
    assert all(each == found[0] for each in found)
    for numbers in zip(*found[0].values(), strict=True):
        assert len(set(numbers)) == SCHEMAS


def test_what_others_write_to_the_topic(tmp_path: Path) -> None:
    """Records of Confluent's registry are read, with fields that are not known here; others are
    skipped, and do no harm."""
    disk, clock = RealDisk(tmp_path / "data"), SystemClock()
    theirs = [
        (b'{"keytype":"NOOP","magic":0}', None),
        (
            b'{"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}',
            b'{"subject":"orders-value","version":1,"id":5,"md5":"x","schema":"\\"int\\"",'
            b'"deleted":false,"ts":1,"guid":"g","metadata":null}',
        ),
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"NONE"}'),
        (b'{"keytype":"MODE","subject":"x","magic":0}', b'{"mode":"READONLY"}'),
        (b"no JSON", b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":0,"magic":1}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b'{"id":"many"}'),
        (b'{"keytype":"WHAT","magic":0}', b"\xff"),
    ]
    with Log.open(disk, clock=clock, rand=random.SystemRandom()) as log:
        registry = Registry.open(disk, log, clock=clock)
        register(registry, "mine", '"long"')
        records = [Record(offset=0, timestamp_ms=1, key=key, value=value) for key, value in theirs]
        log.append_durably("_schemas", append_of_records(records))
        subjects = registry.read(lambda state: state.subjects())
        assert subjects == ["mine", "orders-value"]
        assert registry.read(lambda state: state.level(None)) is CompatibilityLevel.NONE
        assert registry.read(lambda state: state.mode("x")) is RegistryMode.READONLY
        assert register(registry, "mine", '"int"').schema_id == 5
        assert register(registry, "mine", '"bytes"').schema_id == 6
        registry.close()
        reader = log.reader("_schemas", "earliest")
        stored = [each for batch in reader.read() for each in batch.records()]
        reader.close()
    assert (stored[0].key, stored[0].value) == (
        b'{"keytype":"SCHEMA","subject":"mine","version":1,"magic":1}',
        b'{"subject":"mine","version":1,"id":1,"schema":"\\"long\\"","deleted":false}',
    )
