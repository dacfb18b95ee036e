"""Template: nodes to text, with the labels and the value of an alert."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from frazil.errors import Malformed
from frazil.rules.template.functions import function_of, is_true
from frazil.rules.template.syntax import (
    Node,
    Operand,
    TemplateCall,
    TemplateCondition,
    TemplateLiteral,
    TemplateReference,
    parse_template,
)
from frazil.rules.template.values import Value, text_of

ROOTS = ("labels", "value", "externalLabels", "externalURL")
FIELDS = ("Labels", "Value", "ExternalLabels", "ExternalURL")
CACHE_SIZE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateValues:
    """What a template may use."""

    labels: Mapping[str, str]
    value: float
    external_labels: Mapping[str, str] = field(default_factory=dict)
    external_url: str = ""


class Template:
    """A parsed template. Its functions exist, and its references have a root."""

    def __init__(self, text: str) -> None:
        self._nodes = parse_template(text)
        _check(self._nodes)

    def expand(self, values: TemplateValues) -> str:
        """Return the text. `Malformed` if a function cannot take its arguments."""
        return "".join(_texts(self._nodes, values))


@lru_cache(maxsize=CACHE_SIZE)
def compile_template(text: str) -> Template:
    """Return a template. `Malformed` if it has an error or needs what is not supported."""
    return Template(text)


def _check(nodes: Iterable[Node]) -> None:
    for node in nodes:
        match node:
            case TemplateCondition():
                _check((node.test, *node.then, *node.otherwise))
            case TemplateCall():
                function_of(node.name)
                _check(node.arguments)
            case TemplateReference():
                _check_reference(node)


def _check_reference(reference: TemplateReference) -> None:
    if reference.root == ".":
        name = reference.path[0] if reference.path else ""
        if name not in FIELDS:
            raise Malformed(f".{name} is not known in templates; use .{', .'.join(FIELDS)}")
        inner = reference.path[1:]
    else:
        name = reference.root[1:]
        if name not in ROOTS:
            raise Malformed(f"${name} is not known in templates; use ${', $'.join(ROOTS)}")
        inner = reference.path
    has_fields = name.lower().endswith("labels")
    if len(inner) > (1 if has_fields else 0):
        raise Malformed(f"{name}.{'.'.join(inner)} is not known in templates")


def _texts(nodes: Iterable[Node], values: TemplateValues) -> Iterable[str]:
    for node in nodes:
        match node:
            case str():
                yield node
            case TemplateCondition():
                taken = is_true(_value(node.test, values))
                yield from _texts(node.then if taken else node.otherwise, values)
            case _:
                yield text_of(_value(node, values))


def _value(operand: Operand, values: TemplateValues) -> Value:
    match operand:
        case TemplateLiteral():
            return operand.value
        case TemplateReference():
            return _referred(operand, values)
    function = function_of(operand.name)
    arguments = [_value(argument, values) for argument in operand.arguments]
    try:
        return function(*arguments)
    except TypeError:
        raise Malformed(f"{operand.name} cannot take {len(arguments)} values here") from None


def _referred(reference: TemplateReference, values: TemplateValues) -> Value:
    path = reference.path if reference.root == "." else (reference.root[1:], *reference.path)
    found: Value
    match path[0].lower():
        case "labels":
            found = values.labels
        case "externallabels":
            found = values.external_labels
        case "externalurl":
            return values.external_url
        case _:
            return values.value
    return found.get(path[1], "") if len(path) > 1 else found
