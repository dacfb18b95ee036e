"""Values from all sources and their origins. Problems are collected and reported together."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from frazil.config.secrets import is_secret
from frazil.config.settings import Keys, by_keys, settings, tables
from frazil.config.types import accepts, parse
from frazil.errors import Malformed

SIMILARITY_MIN = 0.6
"""Names less similar than this, of 1, are not suggested."""
VALUE_LENGTH_MAX = 60
"""Of an invalid value in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value comes from."""

    source: Literal["default", "file", "environment", "flag"]
    name: str = ""
    """Of the file, the variable or the flag."""

    def __str__(self) -> str:
        """Short form: `frazil.toml`, `FRAZIL_DATA`, `flag`."""
        return self.name if self.source in ("file", "environment") else self.source

    @property
    def where(self) -> str:
        """The first words of an error: `environment variable FRAZIL_DATA`."""
        if self.source == "file":
            return self.name
        source = "environment variable" if self.source == "environment" else self.source
        return f"{source} {self.name}".rstrip()


DEFAULT = Origin(source="default")
FLAG = Origin(source="flag")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingProblem:
    """One thing wrong with the settings."""

    kind: Literal["unreadable", "not_toml", "unknown", "invalid"]
    message: str
    origin: Origin | None = None
    """None if several values together are wrong."""
    name: str = ""
    """Of the setting, as it was written."""
    suggestion: str | None = None
    """The setting that was probably meant, of one that is unknown."""


class InvalidConfig(Malformed):
    """The settings of a node are invalid; the message has one line per problem."""

    def __init__(self, *problems: SettingProblem) -> None:
        super().__init__("\n".join(problem.message for problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """The value of a setting, or of an entry of a map."""

    value: object
    origin: Origin


class SettingValues:
    """All values that were set. Later ones win; entries of maps are settings of their own."""

    def __init__(self) -> None:
        self.values: dict[Keys, Value] = {}
        self.tables: dict[Keys, Origin] = {}
        """Tables that were mentioned, and where first."""
        self.problems: list[SettingProblem] = []

    def add_tree(self, tree: Mapping[str, object], origin: Origin, below: Keys = ()) -> None:
        """Add the values of a file, or those below a table of it."""
        for key, value in tree.items():
            keys = (*below, key)
            if keys in by_keys():
                self._add(keys, value, origin)
            elif keys not in tables():
                self._add_unknown(keys, origin, is_table=isinstance(value, Mapping))
            elif isinstance(value, Mapping):
                self.tables.setdefault(keys, origin)
                self.add_tree(value, origin, keys)
            else:
                self.add_problem(origin, keys, "is a table of settings, not a value")

    def add_text(self, keys: Keys, text: str, origin: Origin) -> None:
        """Add a setting from text. Keys beyond those of a map are the name of its entry."""
        known = by_keys()
        if keys in known:
            try:
                value = parse(known[keys].kind, text)
            except ValueError:
                self._add_invalid(keys, text, origin)
            else:
                self._add(keys, value, origin)
            return
        for length in range(1, len(keys)):
            if keys[:length] in known and known[keys[:length]].kind.base == "map":
                self._add(keys[:length], {".".join(keys[length:]): text}, origin)
                return
        if keys in tables():
            self.add_problem(origin, keys, "is a table of settings, not a value")
        else:
            self._add_unknown(keys, origin)

    def add_problem(self, origin: Origin, keys: Keys, problem: str) -> None:
        """Add that a setting `is ...`, and cannot be."""
        name = ".".join(keys)
        message = f"{origin.where}: {name} {problem}"
        self.problems.append(
            SettingProblem(kind="invalid", message=message, origin=origin, name=name)
        )

    def _add_unknown(self, keys: Keys, origin: Origin, *, is_table: bool = False) -> None:
        name = ".".join(keys)
        near = nearest(name, is_table=is_table)
        what = "a table of settings" if is_table else "a setting"
        message = f"{origin.where}: {name} is not {what}{did_you_mean(near)}"
        self.problems.append(
            SettingProblem(
                kind="unknown", message=message, origin=origin, name=name, suggestion=near
            )
        )

    def _add(self, keys: Keys, value: object, origin: Origin) -> None:
        setting = by_keys()[keys]
        for length in range(1, len(keys)):
            self.tables.setdefault(keys[:length], origin)
        if setting.kind.base != "map":
            if accepts(setting.kind, value):
                self.values[keys] = Value(value=value, origin=origin)
            else:
                self._add_invalid(keys, value, origin)
        elif not isinstance(value, Mapping):
            self._add_invalid(keys, value, origin)
        else:
            for name, text in value.items():
                entry = (*keys, name)
                if isinstance(text, str):
                    self.values[entry] = Value(value=text, origin=origin)
                else:
                    self._add_invalid_entry(entry, text, origin)

    def _add_invalid(self, keys: Keys, value: object, origin: Origin) -> None:
        kind = by_keys()[keys].kind
        # A map may hold passwords, even one that cannot be parsed.
        text = "invalid" if kind.base == "map" else _short(value)
        self.add_problem(origin, keys, f"is {text}; it must be {kind}")

    def _add_invalid_entry(self, keys: Keys, value: object, origin: Origin) -> None:
        if isinstance(value, Mapping):
            problem = f'is a table; quote a name that contains dots: "{keys[-1]}.…"'
        else:
            text = "not a string" if is_secret(keys) else _short(value)
            problem = f"is {text}; it must be a string, in quotes"
        self.add_problem(origin, keys, problem)


def _short(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[:VALUE_LENGTH_MAX]}…"


def nearest(name: str, *, is_table: bool = False) -> str | None:
    """Return the setting that was probably meant: the same word elsewhere, or a similar name."""
    if is_table:
        names = [".".join(keys) for keys in tables() if keys]
        names += [setting.name for setting in settings() if setting.kind.base == "map"]
    else:
        names = [setting.name for setting in settings()]
    last = name.rpartition(".")[2]
    same = [known for known in names if known.rpartition(".")[2] == last]
    return most_similar(name, same or names, SIMILARITY_MIN) or (same[0] if same else None)


def most_similar(name: str, names: Sequence[str], cutoff: float) -> str | None:
    return next(iter(difflib.get_close_matches(name, names, n=1, cutoff=cutoff)), None)


def did_you_mean(suggestion: str | None) -> str:
    """Return the end of an error, empty without a suggestion."""
    return f"; did you mean {suggestion}?" if suggestion else ""
