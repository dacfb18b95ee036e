"""YAML as mappings, lists and texts. A scalar is the text that was written, as Go programs read it
into texts: `severity: 1` is the label "1"."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from frazil.errors import Malformed

DEPTH_MAX = 20
ALIASES_MAX = 1000
"""Nodes that aliases may repeat, so that a small file cannot become a large one."""


@dataclass(frozen=True, slots=True)
class YamlValue:
    """A value and the line where it begins. A scalar without a value is None."""

    content: dict[str, YamlValue] | list[YamlValue] | str | None
    line: int


def yaml_value(text: str) -> YamlValue:
    """Return the one document of a text. `Malformed` if it is not YAML, or has a key twice."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise Malformed(f"it is not YAML: {_reason(error)}") from None
    except RecursionError:
        raise Malformed(f"it is nested more than {DEPTH_MAX} levels deep") from None
    if node is None:
        return YamlValue(None, 1)
    return _Reader().value(node, 0)


def _reason(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return problem if mark is None else f"line {mark.line + 1}: {problem}"


class _Reader:
    """Converts the nodes of one document."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._repeated_count = 0

    def value(self, node: yaml.Node, depth: int) -> YamlValue:
        line = node.start_mark.line + 1
        if depth > DEPTH_MAX:
            raise Malformed(f"line {line}: it is nested more than {DEPTH_MAX} levels deep")
        if id(node) in self._seen:
            self._repeated_count += 1
            if self._repeated_count > ALIASES_MAX:
                raise Malformed(f"line {line}: aliases repeat more than {ALIASES_MAX} values")
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return YamlValue(self._mapping(node, depth), line)
        if isinstance(node, yaml.SequenceNode):
            return YamlValue([self.value(each, depth + 1) for each in node.value], line)
        is_null = node.tag == "tag:yaml.org,2002:null"
        return YamlValue(None if is_null else str(node.value), line)

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, YamlValue]:
        values: dict[str, YamlValue] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise Malformed(f"line {line}: a key must be a text")
            key = str(key_node.value)
            if key in values:
                raise Malformed(f"line {line}: the key {key} occurs twice; remove one")
            values[key] = self.value(value_node, depth + 1)
        return values
