"""What was set, and where. Whatever is wrong is gathered, so that one look shows all of it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from frazil.config.secrets import is_secret
from frazil.config.settings import Keys, by_keys, settings, tables
from frazil.config.types import accepts, parse

CLOSE_ENOUGH = 0.6
"""Names that are less alike than this, of 1, are no help."""
VALUE_LENGTH_MAX = 60
"""Of a wrong value, in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value comes from."""

    source: Literal["default", "file", "environment", "flag"]
    name: str = ""
    """Of the file, the variable or the flag."""
    line: int | None = None
    """In the file."""

    def __str__(self) -> str:
        """Short: frazil.toml:12."""
        if self.source == "file":
            return self.name if self.line is None else f"{self.name}:{self.line}"
        return self.name if self.source == "environment" else self.source

    @property
    def where(self) -> str:
        """At the beginning of a sentence: frazil.toml, line 12."""
        if self.source == "file":
            return self.name if self.line is None else f"{self.name}, line {self.line}"
        if self.source == "environment":
            return f"environment variable {self.name}"
        return f"{self.source} {self.name}".rstrip()


DEFAULT = Origin(source="default")
FLAG = Origin(source="flag")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What a setting, or an entry of a map, was set to."""

    value: object
    origin: Origin


class SettingValues:
    """All that was set. What comes later is stronger; entries of maps are settings of their own."""

    def __init__(self) -> None:
        self.values: dict[Keys, Value] = {}
        self.tables: dict[Keys, Origin] = {}
        """Tables that are there, and who was the first to mention them."""
        self.findings: list[str] = []

    def take_tree(
        self, tree: Mapping[str, object], origin_of: Callable[[Keys], Origin], at: Keys = ()
    ) -> None:
        """Take in what a file says, or what stands below `at` in it."""
        for key, value in tree.items():
            keys = (*at, key)
            origin = origin_of(keys)
            if keys in by_keys():
                self._take(keys, value, origin, origin_of)
            elif keys not in tables():
                self.refuse_name(keys, origin, is_table=isinstance(value, Mapping))
            elif isinstance(value, Mapping):
                self.tables.setdefault(keys, origin)
                self.take_tree(value, origin_of, keys)
            else:
                self._refuse(origin, f"{'.'.join(keys)} is a table of settings, not a value")

    def take_text(self, keys: Keys, text: str, origin: Origin) -> None:
        """Take in a setting as a text. More keys than a map has are the name of an entry."""
        kinds = by_keys()
        if keys in kinds:
            try:
                value = parse(kinds[keys].kind, text)
            except ValueError:
                self._refuse_value(keys, text, origin)
            else:
                self._take(keys, value, origin, lambda _: origin)
            return
        for length in range(1, len(keys)):
            if keys[:length] in kinds and kinds[keys[:length]].kind.base == "map":
                entry = {".".join(keys[length:]): text}
                self._take(keys[:length], entry, origin, lambda _: origin)
                return
        if keys in tables():
            self._refuse(origin, f"{'.'.join(keys)} is a table of settings, not a value")
        else:
            self.refuse_name(keys, origin)

    def refuse_name(self, keys: Keys, origin: Origin, *, is_table: bool = False) -> None:
        """Say that there is no such setting, and which one may have been meant."""
        name = ".".join(keys)
        near = nearest(name, is_table=is_table)
        advice = f"; did you mean {near}?" if near else ""
        what = "a table of settings" if is_table else "a setting"
        self._refuse(origin, f"{name} is not {what}{advice}")

    def _take(
        self, keys: Keys, value: object, origin: Origin, origin_of: Callable[[Keys], Origin]
    ) -> None:
        setting = by_keys()[keys]
        for length in range(1, len(keys)):
            self.tables.setdefault(keys[:length], origin)
        if setting.kind.base != "map":
            if accepts(setting.kind, value):
                self.values[keys] = Value(value=value, origin=origin)
            else:
                self._refuse_value(keys, value, origin)
        elif not isinstance(value, Mapping):
            self._refuse_value(keys, value, origin)
        else:
            for name, text in value.items():
                entry = (*keys, name)
                if isinstance(text, str):
                    self.values[entry] = Value(value=text, origin=origin_of(entry))
                else:
                    self._refuse_entry(entry, text, origin_of(entry))

    def _refuse_value(self, keys: Keys, value: object, origin: Origin) -> None:
        kind = by_keys()[keys].kind
        # A map may hold passwords, also one that cannot be read.
        shown = "not what it should be" if kind.base == "map" else _short(value)
        self._refuse(origin, f"{'.'.join(keys)} is {shown}; it must be {kind}")

    def _refuse_entry(self, keys: Keys, value: object, origin: Origin) -> None:
        name = ".".join(keys)
        if isinstance(value, Mapping):
            self._refuse(
                origin, f'{name} is a table; a name with dots needs quotes: "{keys[-1]}.…"'
            )
            return
        shown = "no text" if is_secret(keys) else _short(value)
        self._refuse(origin, f"{name} is {shown}; it must be a text, in quotes")

    def _refuse(self, origin: Origin, sentence: str) -> None:
        self.findings.append(f"{origin.where}: {sentence}")


def _short(value: object) -> str:
    text = {True: "true", False: "false"}.get(value) if isinstance(value, bool) else repr(value)
    assert text is not None
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[:VALUE_LENGTH_MAX]}…"


def nearest(name: str, *, is_table: bool = False) -> str | None:
    """The name that was most likely meant: the same word elsewhere, or one that looks like it."""
    if is_table:
        names = [".".join(keys) for keys in tables() if keys]
        names += [setting.name for setting in settings() if setting.kind.base == "map"]
    else:
        names = [setting.name for setting in settings()]
    last = name.rpartition(".")[2]
    same = [known for known in names if known.rpartition(".")[2] == last]
    close = difflib.get_close_matches(name, same or names, n=1, cutoff=CLOSE_ENOUGH) or same
    return close[0] if close else None
