"""Text of a rule file to a RuleFile. Every error names the file, the group and the rule.

Labels, names and templates are checked here, so that a file that is read can be evaluated. PromQL
is parsed by the caller's function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import PurePath

from frazil.errors import FrazilError, Malformed
from frazil.results import is_blank, split_statements
from frazil.rules.durations import parse_duration
from frazil.rules.files.model import AlertRule, RecordingRule, Rule, RuleFile, RuleGroup, RuleQuery
from frazil.rules.files.yaml_values import YamlValue, yaml_value
from frazil.rules.samples import ALERT_NAME, METRIC_NAME
from frazil.rules.sql_text import bound_sql
from frazil.rules.template.evaluate import compile_template

GROUPS_MAX = 1000
"""Of a file."""
RULES_MAX = 1000
"""Of a group."""
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
SERIES_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")

FILE_KEYS = ("groups",)
GROUP_KEYS = ("name", "interval", "query_offset", "limit", "labels", "rules")
ALERT_KEYS = ("alert", "expr", "sql", "for", "keep_firing_for", "labels", "annotations")
RECORD_KEYS = ("record", "expr", "sql", "labels")

CheckExpr = Callable[[str], None]
"""Parses PromQL. `Malformed` if it is wrong."""


def read_rule_file(path: str, text: str, check_expr: CheckExpr) -> RuleFile:
    """Return what a file says. `Malformed` names the first error and its place."""
    place = PurePath(path).name
    try:
        document = yaml_value(text)
    except Malformed as error:
        raise Malformed(f"{place}: {error}") from None
    fields = _fields(document, place, FILE_KEYS)
    listed = _list(fields.get("groups"), f"{place}: groups", GROUPS_MAX)
    groups: list[RuleGroup] = []
    for number, value in enumerate(listed, 1):
        group = _group(path, place, number, value, check_expr)
        if any(other.name == group.name for other in groups):
            raise Malformed(f"{place}: the group {group.name} occurs twice; rename one")
        groups.append(group)
    return RuleFile(path=path, groups=tuple(groups))


def _group(
    path: str, file_place: str, number: int, value: YamlValue, check_expr: CheckExpr
) -> RuleGroup:
    place = f"{file_place}: group {number}"
    fields = _fields(value, place, GROUP_KEYS)
    name = _text(fields.get("name"), f"{place}: name")
    place = f"{file_place}: group {name}"
    interval_ms = _duration(fields.get("interval"), f"{place}: interval")
    if interval_ms == 0:
        interval_ms = None  # as in Prometheus: not set
    rules = _list(fields.get("rules"), f"{place}: rules", RULES_MAX)
    return RuleGroup(
        file=path,
        name=name,
        interval_ms=interval_ms,
        query_offset_ms=_duration(fields.get("query_offset"), f"{place}: query_offset"),
        limit=_count(fields.get("limit"), f"{place}: limit"),
        labels=_labels(fields.get("labels"), f"{place}: labels", ()),
        rules=tuple(_rule(place, index, rule, check_expr) for index, rule in enumerate(rules, 1)),
    )


def _rule(group_place: str, number: int, value: YamlValue, check_expr: CheckExpr) -> Rule:
    place = f"{group_place}: rule {number} (line {value.line})"
    keys = value.content if isinstance(value.content, dict) else {}
    if ("alert" in keys) == ("record" in keys):
        raise Malformed(f"{place}: a rule has either alert or record, with its name")
    if "record" in keys:
        return _recording_rule(group_place, place, value, check_expr)
    return _alert_rule(group_place, place, value, check_expr)


def _recording_rule(
    group_place: str, place: str, value: YamlValue, check_expr: CheckExpr
) -> RecordingRule:
    fields = _fields(value, place, RECORD_KEYS)
    name = _text(fields["record"], f"{place}: record")
    place = f"{group_place}: rule {name} (line {value.line})"
    if SERIES_NAME.fullmatch(name) is None:
        raise Malformed(
            f"{place}: {name!r} cannot be the name of a series; use letters, digits, _ and :"
        )
    return RecordingRule(
        name=name,
        query=_query(fields, place, check_expr),
        labels=_labels(fields.get("labels"), f"{place}: labels", (METRIC_NAME,)),
    )


def _alert_rule(group_place: str, place: str, value: YamlValue, check_expr: CheckExpr) -> AlertRule:
    fields = _fields(value, place, ALERT_KEYS)
    name = _text(fields["alert"], f"{place}: alert")
    place = f"{group_place}: rule {name} (line {value.line})"
    labels = _labels(fields.get("labels"), f"{place}: labels", (METRIC_NAME, ALERT_NAME))
    annotations = _labels(fields.get("annotations"), f"{place}: annotations", ())
    for kind, texts in (("label", labels), ("annotation", annotations)):
        for key, text in texts.items():
            with_place(f"{place}: {kind} {key}", partial(compile_template, text))
    return AlertRule(
        name=name,
        query=_query(fields, place, check_expr),
        for_ms=_duration(fields.get("for"), f"{place}: for") or 0,
        keep_firing_for_ms=_duration(fields.get("keep_firing_for"), f"{place}: keep_firing_for")
        or 0,
        labels=labels,
        annotations=annotations,
    )


def with_place(place: str, work: Callable[[], object]) -> None:
    """Run `work`; its error begins with `place`."""
    try:
        work()
    except FrazilError as error:
        raise Malformed(f"{place}: {error}") from None


def _query(fields: dict[str, YamlValue], place: str, check_expr: CheckExpr) -> RuleQuery:
    if ("expr" in fields) == ("sql" in fields):
        raise Malformed(f"{place}: a rule has either expr, in PromQL, or sql")
    if "expr" in fields:
        text = _text(fields["expr"], f"{place}: expr")
        with_place(f"{place}: expr", lambda: check_expr(text))
        return RuleQuery(language="promql", text=text)
    statements, rest = split_statements(_text(fields["sql"], f"{place}: sql"))
    if not is_blank(rest):
        statements.append(rest.strip())
    if len(statements) != 1:
        raise Malformed(f"{place}: sql must be one query")
    text = statements[0]
    with_place(f"{place}: sql", lambda: bound_sql(text, 0))
    return RuleQuery(language="sql", text=text)


def _fields(value: YamlValue, place: str, known: Iterable[str]) -> dict[str, YamlValue]:
    """Return the fields of a mapping. `Malformed` if it is another value, or one is not known."""
    content = value.content
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise Malformed(f"{place}: line {value.line} must be a mapping: {', '.join(known)}")
    for name, field in content.items():
        if name not in known:
            raise Malformed(
                f"{place}: {name} (line {field.line}) is not known here; use {', '.join(known)}"
            )
    return content


def _list(value: YamlValue | None, place: str, count_max: int) -> list[YamlValue]:
    if value is None or value.content is None:
        return []
    if not isinstance(value.content, list):
        raise Malformed(f"{place} (line {value.line}) must be a list")
    if len(value.content) > count_max:
        raise Malformed(
            f"{place} has {len(value.content)} entries; at most {count_max} are allowed"
        )
    return value.content


def _text(value: YamlValue | None, place: str) -> str:
    if value is None or value.content is None or value.content == "":
        raise Malformed(f"{place} is missing or empty; set it")
    if not isinstance(value.content, str):
        raise Malformed(f"{place} (line {value.line}) must be a text")
    return value.content


def _duration(value: YamlValue | None, place: str) -> int | None:
    if value is None or value.content is None:
        return None
    try:
        return parse_duration(_text(value, place))
    except Malformed as error:
        raise Malformed(f"{place}: {error}") from None


def _count(value: YamlValue | None, place: str) -> int:
    if value is None or value.content is None:
        return 0
    text = _text(value, place)
    if not text.isdecimal() or not text.isascii():
        raise Malformed(f"{place} is {text!r}; it must be a whole number of at least 0")
    return int(text)


def _labels(value: YamlValue | None, place: str, reserved: Iterable[str]) -> dict[str, str]:
    if value is None or value.content is None:
        return {}
    if not isinstance(value.content, dict):
        raise Malformed(f"{place} (line {value.line}) must be a mapping of names and texts")
    labels: dict[str, str] = {}
    for name, field in value.content.items():
        if LABEL_NAME.fullmatch(name) is None or name in reserved:
            raise Malformed(
                f"{place}: {name!r} cannot be a name here; use letters, digits and _"
                + (f", and not {' or '.join(reserved)}" if reserved else "")
            )
        if isinstance(field.content, dict | list):
            raise Malformed(f"{place}: {name} (line {field.line}) must be a text")
        labels[name] = field.content or ""
    return labels
