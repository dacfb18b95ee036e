"""The page docs/configuration.md, made from the code."""

from __future__ import annotations

from frazil.config.descriptions import comment_of, purpose_of, spoken, toml_value
from frazil.config.environment import OTHER_VARIABLES
from frazil.config.settings import Setting, SettingsTable, settings, tables

INTRO = """\
# Configuration

<!-- Made from the code by `frazil config reference > docs/configuration.md`; a test compares. -->

A node needs no settings. What you set may come from four places; the first that has it wins:

1. a flag, as in `frazil up --data /var/lib/frazil`; for all that has no flag of its own there is
   `--set log.disk_bytes_max=50000000000`, which can be repeated;
2. the environment, as in `FRAZIL_LOG__DISK_BYTES_MAX=50000000000`;
3. a TOML file: `--config FILE`, else the one that `FRAZIL_CONFIG` names, else `frazil.toml` in the
   current folder, if it is there;
4. the default.

All verbs read them, and so does `frazil.open` in Python. Paths are relative to the current folder.

```sh
frazil init                            # writes frazil.toml: every setting, and what it is for
frazil config show --origin            # what is in force, and where it comes from
frazil config show --changed --json    # only what is set, a line of JSON each
```

A name that does not exist, a value of the wrong type, and values that contradict each other are
refused at start, with the place, and the name that may have been meant:

```
frazil: %(slip)s
```

## In the environment and in `--set`

A variable is `FRAZIL_`, the table, two underscores, and the setting, in capitals; a table in a
table has two underscores more. Values are texts:

| type | as a text |
| ---- | --------- |
| whole number | `67108864` or `67_108_864` |
| true or false | `true` or `false` |
| text | as it is, without quotes |
| list of texts | `a,b`, or JSON: `["a", "b"]`; nothing is the empty list |
| table of texts | JSON: `{"type": "rest", "uri": "https://catalog.example"}` |

An entry of a table of texts can also be set alone. In the name of a variable `__` is then a dot and
`_` a hyphen, so that `FRAZIL_LAKE__CATALOG__S3__ACCESS_KEY_ID` is `s3.access-key-id`; in `--set` a
name is as it is: `--set lake.catalog.s3.region=eu-west-1`. Names with capitals or underscores can
be set as JSON only. Entries from several places are joined, and the stronger place wins for each.

`none` takes back what the file sets, where the default is none: `FRAZIL_LAKE__WAREHOUSE=none`. An
empty variable is an empty text, and not as if it were absent: a protection that is set to nothing
by mistake is refused, and not left out.

A variable with `FRAZIL_` and `__` in its name that is no setting is refused; without `__` only when
it looks like a slip. %(others)s are no settings: the first names the file, the others are for
clients.

## Passwords

They are entries of `lake.catalog`, `lake.kafka.client` and `lake.spark`, and need not stand in the
file: `env:NAME` is the value of a variable, and `file:PATH` the content of a file. That is so for
entries whose name says that they are secret: password, token, credential, access key, and so on.

```toml
[lake.kafka.client]
"sasl.username" = "frazil"
"sasl.password" = "env:KAFKA_PASSWORD"
```

`frazil config show` prints `***` instead of a secret, and a reference as it is.
"""
SLIP = (
    "frazil.toml, line 12: log.segment_byte_max is not a setting; "
    "did you mean log.segment_bytes_max?"
)

TYPES = {
    "number": "whole number",
    "switch": "true or false",
    "text": "text",
    "list": "list of texts",
    "map": "table of texts",
}


def reference() -> str:
    """The whole page."""
    return _intro() + "".join(map(_section, tables().values()))


def _intro() -> str:
    others = ", ".join(f"`{name}`" for name in sorted(OTHER_VARIABLES))
    return INTRO % {"others": others, "slip": SLIP}


def _section(table: SettingsTable) -> str:
    title = f"`[{'.'.join(table.keys)}]`" if table.keys else "At the top"
    absent = " It is absent unless it is set." if table.is_optional else ""
    rows = "".join(_row(setting) for setting in settings() if setting.table == table)
    return (
        f"\n## {title}\n\n{purpose_of(table)}{absent}\n\n"
        "| setting | type | default | variable | what it does |\n"
        "| ------- | ---- | ------- | -------- | ------------ |\n"
        f"{rows}"
    )


def _row(setting: Setting) -> str:
    kind = setting.kind
    what = TYPES.get(kind.base) or ", ".join(f"`{toml_value(each)}`" for each in kind.choices)
    cells = (f"`{setting.name}`", what, _default(setting), f"`{setting.variable}`")
    return f"| {' | '.join(cells)} | {comment_of(setting).replace('|', '&#124;')} |\n"


def _default(setting: Setting) -> str:
    if setting.default is None:
        return "none" if setting.kind.is_optional else "must be set"
    if setting.kind.base == "map":
        return "empty"
    human = spoken(setting.keys[-1], setting.default)
    return f"`{toml_value(setting.default)}`" + (f" ({human})" if human else "")
