"""python -m tests.kafka.wire.generate

Writes `src/frazil/kafka/wire/messages` and `api_table.py` from the definitions in Kafka's jars. A
test fails if the files in git are not what this writes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from itertools import groupby
from pathlib import Path
from typing import Any

from frazil.kafka.wire.schema import VersionRange
from tests.kafka.wire.definitions import KAFKA, Definition, definitions, missing_jars, snake

ROOT = Path(__file__).parents[3]
WIRE = ROOT / "src" / "frazil" / "kafka" / "wire"
ORIGIN = (
    f"Generated from the definitions of Apache Kafka {KAFKA} by `python -m"
    " tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache"
    " License 2.0; see NOTICE."
)
PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "uuid": "bytes",
    "string": "str",
    "bytes": "bytes",
    "records": "Bytes",
}
"""Types of fields; all others are `int`, or structs."""


def main() -> int:
    missing = missing_jars()
    if missing:
        sys.stderr.write(f"run `make setup` with a network connection; missing: {missing}\n")
        return 1
    shutil.rmtree(WIRE / "messages", ignore_errors=True)
    for path, text in generated().items():
        (WIRE / path).parent.mkdir(exist_ok=True)
        (WIRE / path).write_text(text, encoding="utf-8")
    return 0


def generated() -> dict[str, str]:
    """Return all files: path below `wire/` -> text, formatted."""
    found = definitions()
    texts = {"api_table.py": _api_table(found)}
    lines = []
    for module, group in groupby(found, key=lambda each: each.module):
        messages = list(group)
        texts[f"messages/{module}.py"] = _module(messages)
        lines.append((f"{module}.py", _title(messages)))
    width = max(len(file) for file, _ in lines)
    texts["messages/__init__.py"] = "\n".join(
        [
            '"""wire/messages: requests, responses and records of Kafka, one class per message.',
            "",
            textwrap.fill(ORIGIN, 100),
            "",
            *(f"{file:{width}}  {title}" for file, title in lines),
            '"""',
            "",
        ]
    )
    return _formatted(texts)


def _formatted(texts: dict[str, str]) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        for path, text in texts.items():
            (Path(folder) / path).parent.mkdir(exist_ok=True)
            (Path(folder) / path).write_text(text, encoding="utf-8")
        config = ROOT / "pyproject.toml"
        command = [sys.executable, "-m", "ruff", "format", "--quiet", "--config", str(config)]
        subprocess.run([*command, folder], check=True)
        return {path: (Path(folder) / path).read_text(encoding="utf-8") for path in texts}


def _title(messages: list[Definition]) -> str:
    first = messages[0].json
    if first["type"] in ("request", "response"):
        name = first["name"].removesuffix("Request")
        return f"{name}, API {first['apiKey']}, versions {first['validVersions']}"
    return {
        "consumer_protocol": "what members of classic groups tell each other",
        "control_records": "the value of a record that ends a transaction",
        "group_records": "records of `__consumer_offsets`",
        "transaction_records": "records of `__transaction_state`",
    }[messages[0].module]


def _api_table(found: list[Definition]) -> str:
    requests = [each for each in found if each.json["type"] == "request"]
    responses = {each.json["apiKey"]: each for each in found if each.json["type"] == "response"}
    rows = []
    for each in requests:
        answer = responses[each.json["apiKey"]].json
        assert answer["validVersions"] == each.json["validVersions"]
        assert answer["flexibleVersions"] == each.json["flexibleVersions"]
        name = each.name.removesuffix("Request")
        flexible = _range(each.json["flexibleVersions"])
        row = (each.json["apiKey"], name, each.module, each.json["validVersions"], flexible)
        rows.append(f"    {row},")
    head = textwrap.fill(f'"""APIs and their versions. {ORIGIN}', 100)
    return "\n".join(
        [
            f'{head}\n"""\n\nfrom __future__ import annotations\n',
            "API_TABLE = (",
            *rows,
            ")",
            '"""Key, name, module in `messages/`, versions, flexible versions."""',
            "",
        ]
    )


def _module(messages: list[Definition]) -> str:
    classes = [_message(each) for each in messages]
    body = "\n\n\n".join(classes) + _records(messages)
    names = ["Field", "KafkaMessage", "Versions"]
    names += ["Struct"] if "(Struct)" in body else []
    names += [name for name in ("Bytes", "UUID_ZERO") if re.search(rf"\b{name}\b", body)]
    order = sorted(names, key=lambda name: (not name.isupper(), name))
    field = ["", "from msgspec import field"] if "= field(" in body else []
    return "\n".join(
        [
            textwrap.fill(f'"""{_title(messages)}. {ORIGIN}', 100),
            '"""',
            "",
            "from __future__ import annotations",
            "",
            "from typing import Annotated",
            *field,
            "",
            f"from frazil.kafka.wire.schema import {', '.join(order)}",
            "",
            "",
            body,
            "",
        ]
    )


def _records(messages: list[Definition]) -> str:
    """The table of an internal topic: type of a record -> classes of key and value."""
    keys = [each for each in messages if each.json["type"] == "coordinator-key"]
    if not keys:
        return ""
    keys.sort(key=lambda each: int(each.json["apiKey"]))
    names = [(each.json["apiKey"], each.name, each.name.removesuffix("Key")) for each in keys]
    rows = "".join(f"    {number}: ({key}, {name}Value),\n" for number, key, name in names)
    kind = "dict[int, tuple[type[KafkaMessage], type[KafkaMessage]]]"
    return (
        f'\n\n\nRECORDS: {kind} = {{\n{rows}}}\n"""Type of a record: classes of key and value."""'
    )


def _message(definition: Definition) -> str:
    json = definition.json
    lines = [f"class {definition.name}(KafkaMessage):", *_doc(_notes(definition), 4)]
    extra = "".join(
        [
            f", flexible={_range(json['flexibleVersions'])!r}"
            if _range(json["flexibleVersions"])
            else "",
            f", api_key={json['apiKey']}" if "apiKey" in json else "",
        ]
    )
    lines += [
        "",
        f"    VERSIONS = Versions({json['name']!r}, {json['validVersions']!r}{extra})",
        "",
    ]
    valid = VersionRange.parse(json["validVersions"])
    shared = {each["name"]: each for each in json.get("commonStructs", ())}
    for name, (doc, fields) in _structs(json["fields"], shared).items():
        lines += [f"    class {name}(Struct):", *_doc(doc, 8), ""]
        lines += _fields(fields, definition.name, valid, 8)
        lines += [""]
    lines += _fields(json["fields"], definition.name, valid, 4)
    return "\n".join(lines)


def _notes(definition: Definition) -> str:
    """The summary of a message, and what its versions brought."""
    json = definition.json
    kind = {"request": "Request", "response": "Response"}.get(json["type"], "Message")
    flexible = _range(json["flexibleVersions"])
    summary = f"{kind} in versions {json['validVersions']}" + (
        f", flexible in {flexible}." if flexible else "."
    )
    paragraphs: list[list[str]] = [[]]
    for note in definition.notes:
        if not note.strip() or note.startswith(("Version ", "Starting in ")):
            paragraphs.append([])
        paragraphs[-1].append(note.strip())
    texts = [" ".join(" ".join(each).split()) for each in paragraphs]
    return "\n\n".join([summary, *(text for text in texts if text)])


def _structs(
    fields: list[dict[str, Any]], shared: dict[str, Any]
) -> dict[str, tuple[str, list[dict[str, Any]]]]:
    """Return all structs below some fields, inner ones first: name -> description and fields."""
    found: dict[str, tuple[str, list[dict[str, Any]]]] = {}
    for field in fields:
        name = field["type"].removeprefix("[]")
        if not name[0].isupper():
            continue
        inner = field.get("fields") or shared[name]["fields"]
        found |= _structs(inner, shared)
        found.setdefault(name, (field["about"], inner))
    return found


def _fields(
    fields: list[dict[str, Any]], message: str, valid: VersionRange, indent: int
) -> list[str]:
    lines = []
    for field in fields:
        text = field.get("versions") or field["taggedVersions"]
        versions = VersionRange.parse(_range(text))
        if versions.first > valid.last or versions.last < valid.first:
            continue  # of versions that Kafka no longer has
        kind = _python_type(field, message)
        wire = [repr(field["type"]), repr(_range(text))]
        for key, name in (("nullableVersions", "nullable"), ("taggedVersions", "tagged")):
            if _range(field.get(key, "none")):
                wire.append(f"{name}={field[key]!r}")
        wire += [f"tag={field['tag']}"] if "tag" in field else []
        wire += ["ignorable=True"] if field.get("ignorable") in (True, "true") else []
        name = snake(field["name"])
        default = _default(field, message)
        annotation = f"Annotated[{kind}, Field({', '.join(wire)})]"
        lines.append(" " * indent + f"{name}: {annotation} = {default}")
        lines += _doc(" ".join(field.get("about", "").split()), indent)
    return lines


def _is_absent_by_default(field: dict[str, Any]) -> bool:
    """Is None the value of a struct unless it is set? Then it is null, or, if it cannot be null,
    a tagged field that is not sent."""
    is_nullable = bool(_range(field.get("nullableVersions", "none")))
    return field["type"][0].isupper() and bool(
        field.get("default") == "null" or ("taggedVersions" in field and not is_nullable)
    )


def _python_type(field: dict[str, Any], message: str) -> str:
    element = field["type"].removeprefix("[]")
    kind = f"{message}.{element}" if element[0].isupper() else PYTHON_TYPES.get(element, "int")
    if field["type"].startswith("[]"):
        kind = f"list[{kind}]"
    is_optional = _range(field.get("nullableVersions", "none")) or _is_absent_by_default(field)
    return f"{kind} | None" if is_optional else kind


def _default(field: dict[str, Any], message: str) -> str:
    # The text "null" is null; the null of JSON, which one field has, says nothing.
    kind, default = field["type"], field.get("default")
    default = "" if default is None else default
    if default == "null" or _is_absent_by_default(field):
        return "None"
    if kind.startswith("[]"):
        return "[]"
    if kind[0].isupper():
        return f"field(default_factory=lambda: {message}.{kind}())"
    match kind:
        case "uuid":
            assert not default, f"a default for the id {field['name']}"
            return "UUID_ZERO"
        case "string":
            return repr(default)
        case "bytes" | "records":
            return 'b""'
        case "bool":
            return str(str(default).lower() == "true")
        case "float64":
            return repr(float(default or 0))
    return repr(int(str(default or 0), 0))


def _range(text: str) -> str:
    return "" if text == "none" else text


def _doc(text: str, indent: int) -> list[str]:
    if not text:
        return []
    assert "\\" not in text
    space = " " * indent
    wrapped = [
        textwrap.wrap(each, 97 - indent, break_on_hyphens=False, break_long_words=False)
        for each in f'"""{text}'.split("\n\n")
    ]
    lines = [line for each in wrapped for line in ["", *each]][1:]
    lines += [] if len(wrapped) == 1 and not lines[-1].endswith('"') else [""]
    lines[-1] += '"""'
    return [space + line if line else "" for line in lines]


if __name__ == "__main__":
    sys.exit(main())
