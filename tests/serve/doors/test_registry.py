"""The API of a schema registry: numbers of errors, parameters, who may do what, and bodies that
make no sense."""

from __future__ import annotations

import base64
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.registry.formats.avro_pairs import AvroSchemas
from tests.registry.opened import record
from tests.serve.served import Said, Served, served

JSON_TYPE = "application/vnd.schemaregistry.v1+json"
PROTO = 'syntax = "proto3"; package p; message M { int32 a = 1; repeated string b = 2; }'
SEED, BODIES = 20261119, 800


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("registry") / "data") as opened:
        yield opened


def ask(there: Served, line: str, body: Any = None, **headers: str) -> Said:
    method, path = line.split(" ")
    return there.ask(method, f"/registry/{path}", body, {"Content-Type": JSON_TYPE, **headers})


def register(there: Served, subject: str, text: str, kind: str = "AVRO", **more: Any) -> Said:
    body = {"schema": text, "schemaType": kind, **more}
    return ask(there, f"POST subjects/{quote(subject, safe='')}/versions", body)


def test_paths_and_what_they_answer(there: Served) -> None:
    """Parameters of Confluent's API: deleted, latestOnly, prefixes, pages, formats."""
    for text in (record("R", "a"), record("R", "a", "b")):
        assert register(there, "paths-value", text).status == 200
    made = register(there, "paths-proto", PROTO, "PROTOBUF").json
    assert made.keys() == {"id"}
    answers = {
        "GET subjects?subjectPrefix=paths": ["paths-proto", "paths-value"],
        "GET subjects?subjectPrefix=:*:paths&offset=1&limit=1": ["paths-value"],
        "GET subjects/paths-value/versions": [1, 2],
        "GET schemas/types": ["AVRO", "JSON", "PROTOBUF"],
        f"GET schemas/ids/{made['id']}/subjects": ["paths-proto"],
        f"GET schemas/ids/{made['id']}/versions": [{"subject": "paths-proto", "version": 1}],
        "GET subjects/paths-value/versions/latest/schema": json.loads(record("R", "a", "b")),
        "GET config/paths-value?defaultToGlobal=true": {"compatibilityLevel": "BACKWARD"},
        "GET mode": {"mode": "READWRITE"},
        "GET contexts": ["."],
        "GET ": {},
    }
    for line, expected in answers.items():
        said = ask(there, line)
        assert (said.status, said.json) == (200, expected), line
        assert said.headers["content-type"] == JSON_TYPE
    one = ask(there, "GET subjects/paths-proto/versions/1?format=serialized").json
    assert base64.b64decode(one["schema"]).startswith(b"\n\x0ddefault.proto")
    assert (one["schemaType"], one["subject"], one["version"]) == ("PROTOBUF", "paths-proto", 1)
    latest = ask(there, "GET schemas?subjectPrefix=paths&latestOnly=true").json
    assert [(each["subject"], each["version"]) for each in latest] == [
        ("paths-proto", 1),
        ("paths-value", 2),
    ]
    checked = ask(
        there,
        "POST compatibility/subjects/paths-value/versions/latest?verbose=true",
        {"schema": '"int"'},
    )
    assert checked.json["is_compatible"] is False
    assert "TYPE_MISMATCH" in checked.json["messages"][0]
    assert ask(there, "DELETE subjects/paths-value/versions/1").json == 1
    assert ask(there, "GET subjects/paths-value/versions").json == [2]
    assert ask(there, "GET subjects/paths-value/versions?deleted=true").json == [1, 2]
    assert ask(there, "GET subjects/paths-value/versions?deletedOnly=true").json == [1]


@pytest.mark.parametrize(
    ("line", "body", "status", "code"),
    [
        ("GET nothing", None, 404, 404),
        ("PATCH subjects", None, 405, 405),
        ("GET subjects/none/versions", None, 404, 40401),
        ("GET subjects/known/versions/9", None, 404, 40402),
        ("GET subjects/known/versions/0", None, 422, 42202),
        ("GET subjects/known/versions/99999999999", None, 422, 42202),
        ("GET schemas/ids/999", None, 404, 40403),
        ("GET schemas/ids/x", None, 404, 40403),
        ("GET config/known", None, 404, 40408),
        ("GET mode/known", None, 404, 40409),
        ("DELETE subjects/none", None, 404, 40401),
        ("DELETE subjects/known?permanent=true", None, 404, 40405),
        ("DELETE subjects/known/versions/1?permanent=true", None, 404, 40407),
        ("DELETE subjects/known?permanent=perhaps", None, 400, 400),
        ("POST subjects/known/versions", {"schema": ""}, 422, 42201),
        ("POST subjects/known/versions", {"schema": "nonsense"}, 422, 42201),
        ("POST subjects/known/versions", {"schema": "{", "schemaType": "JSON"}, 422, 42201),
        ("POST subjects/known/versions", {"schema": "x", "schemaType": "PROTOBUF"}, 422, 42201),
        ("POST subjects/known/versions", {"schema": '"int"', "ruleSet": {"a": 1}}, 422, 42201),
        ("POST subjects/known/versions", {"schema": '"string"'}, 409, 409),
        ("POST subjects/known/versions", {"schema": '"int"', "schemaType": "XML"}, 400, 400),
        ("POST subjects/known/versions", {"schema": '"int"', "id": 3}, 422, 42205),
        ("POST subjects/known/versions", b"{", 400, 400),
        ("POST subjects/a%0Ab/versions", {"schema": '"int"'}, 422, 42208),
        ("POST subjects/:.ctx:a/versions", {"schema": '"int"'}, 422, 42208),
        ("POST subjects/known", {"schema": '"bytes"'}, 404, 40403),
        ("PUT config", {"compatibility": "SOME"}, 422, 42203),
        ("PUT config", {"compatibility": "FULL", "normalize": True}, 422, 42203),
        ("PUT mode", {"mode": "SOME"}, 422, 42204),
        ("PUT mode", {"mode": "IMPORT"}, 422, 42205),
    ],
)
def test_errors_have_the_numbers_of_confluent(
    there: Served, line: str, body: Any, status: int, code: int
) -> None:
    assert register(there, "known", '"int"').status == 200
    said = ask(there, line, body)
    assert (said.status, said.json["error_code"]) == (status, code), said.body
    assert said.json.keys() == {"error_code", "message"} and said.json["message"]


def test_who_may_read_and_who_may_write(tmp_path: Path) -> None:
    """Changes need a token for statements; tokens come as Bearer, or as the password of Basic."""
    reader, writer = "reader-reader-reader", "writer-writer-writer"
    (tmp_path / "readers").write_text(reader)
    (tmp_path / "writers").write_text(writer)
    serve = {
        "token_file": str(tmp_path / "readers"),
        "statements_token_file": str(tmp_path / "writers"),
    }
    headers = {
        "nobody": {},
        "basic reader": {"Authorization": _basic(f"anyone:{reader}")},
        "bearer writer": {"Authorization": f"Bearer {writer}"},
        "basic writer": {"Authorization": _basic(f":{writer}")},
        "wrong": {"Authorization": "Basic ***"},
    }
    schema = {"schema": '"int"'}
    lines = {
        "reads": ("GET subjects", None),
        "looks up": ("POST subjects/a", schema),
        "checks": ("POST compatibility/subjects/a/versions/latest", schema),
        "registers": ("POST subjects/a/versions", schema),
        "sets": ("PUT config", {"compatibility": "FULL"}),
        "deletes": ("DELETE config", None),
    }
    with served(tmp_path / "data", serve=serve) as opened:
        allowed = {
            who: {
                what
                for what, (line, body) in lines.items()
                if ask(opened, line, body, **header).status not in (401, 403)
            }
            for who, header in headers.items()
        }
        denied = ask(opened, "GET subjects")
    reading = {"reads", "looks up", "checks"}
    assert allowed == {
        "nobody": set(),
        "basic reader": reading,
        "bearer writer": set(lines),
        "basic writer": set(lines),
        "wrong": set(),
    }
    assert denied.json["error_code"] == 401


def test_bodies_that_make_no_sense_never_break_it(there: Served) -> None:
    """Schemas and bodies, damaged anywhere: each is taken or refused, none is a failure of ours."""
    rand = random.Random(SEED)
    avro = [text for pair in AvroSchemas(SEED).pairs(30) for text in pair]
    kinds = [("AVRO", text) for text in avro] + [("PROTOBUF", text) for text in PROTOS]
    kinds += [("JSON", text) for text in JSONS]
    statuses: Counter[int] = Counter()
    for number in range(BODIES):
        kind, text = rand.choice(kinds)
        body: Any = {"schema": _damaged(rand, text), "schemaType": kind}
        if rand.random() < 0.2:
            body[rand.choice(("references", "id", "version", "schema"))] = rand.choice(ODD_VALUES)
        if rand.random() < 0.1:
            body = _damaged(rand, json.dumps(body)).encode("utf-8", "replace")
        subject = f"fuzz{number % 40}{kind}"
        line = rand.choice(
            (
                f"POST subjects/{subject}/versions",
                f"POST subjects/{subject}?normalize=true",
                f"POST compatibility/subjects/{subject}/versions?verbose=true",
                f"GET subjects/{quote(_damaged(rand, subject), safe='')}/versions/latest",
                "PUT config",
                f"PUT mode/{subject}x",
            )
        )
        said = ask(there, line, body)
        statuses[said.status] += 1
        assert said.status in (200, 400, 404, 409, 413, 422), (line, body, said.body)
    assert min(statuses[200], statuses[422]) > 50, statuses


PROTOS = [
    PROTO,
    'syntax = "proto2"; message A { required A a = 1; optional group G = 2 { optional E e = 3 '
    "[default = X]; } enum E { option allow_alias = true; X = 0; Y = 0x0; reserved 5 to max; } "
    "extensions 100 to 200; reserved 9, 10 to 12; } extend A { optional string s = 100; }",
    'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message T { map<string, '
    "google.protobuf.Timestamp> m = 1; oneof o { T t = 2; bytes b = 3; } optional bool c = 4 "
    "[deprecated = true, (x.y) = { a: 1 }]; } service S { rpc M (stream T) returns (T); }",
]
JSONS = [
    '{"type":"object","properties":{"a":{"$ref":"#/definitions/b"}},"definitions":{"b":{"anyOf":'
    '[{"type":"null"},{"$ref":"#"}]}},"required":["a"],"additionalProperties":false}',
    '{"type":["string","number"],"maxLength":5,"multipleOf":0.1,"pattern":"^[a-z]+$","enum":'
    '["a",1,null],"not":{"const":3},"if":{"type":"string"},"then":true}',
    '{"prefixItems":[{"type":"integer"},true],"items":{"$anchor":"x","minimum":3},"uniqueItems":'
    'true,"contains":{"$ref":"#x"},"patternProperties":{"^a(?=b)":{"allOf":[{},false]}}}',
]
ODD_VALUES: list[Any] = [
    None,
    0,
    -1,
    2**70,
    "x",
    [],
    [{}],
    {"a": []},
    [{"name": "n", "subject": "s"}],
    True,
]
PIECES = ["{", "}", "[", "]", '"', ",", ":", "null", "1e999", "-1", "\\ud800", "\x00", "é", "$ref"]


def _damaged(rand: random.Random, text: str) -> str:
    for _ in range(rand.choice((0, 0, 1, 1, 2, 5))):
        begin = rand.randrange(len(text) + 1)
        end = min(len(text), begin + rand.choice((0, 1, 3, 20)))
        piece = rand.choice((rand.choice(PIECES), text[end : end + 30], ""))
        text = text[:begin] + piece + text[end:]
    return text


def _basic(pair: str) -> str:
    return f"Basic {base64.b64encode(pair.encode()).decode()}"
