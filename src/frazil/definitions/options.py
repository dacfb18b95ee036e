"""Options of statements: `NAME=value`, in any order, each at most once, with or without commas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar, get_args

from frazil.definitions.statements import (
    ColumnSpec,
    FileCompression,
    FileFormat,
    FormatType,
    PartitionField,
)
from frazil.definitions.token_reader import LIST_MAX, TokenReader
from frazil.errors import Malformed, TooLarge

FORMATS = get_args(FormatType)
COMPRESSIONS = get_args(FileCompression)
TRANSFORMS = ("year", "month", "day", "hour", "bucket", "truncate")
COLUMN_TYPES = {
    **dict.fromkeys(("boolean", "bool"), "BOOLEAN"),
    **dict.fromkeys(("int", "integer"), "INT"),
    **dict.fromkeys(("bigint", "long"), "BIGINT"),
    **dict.fromkeys(("float", "real"), "FLOAT"),
    **dict.fromkeys(("double",), "DOUBLE"),
    **dict.fromkeys(("varchar", "string", "text"), "VARCHAR"),
    **dict.fromkeys(("date",), "DATE"),
    **dict.fromkeys(("timestamp",), "TIMESTAMP"),
    **dict.fromkeys(("timestamptz",), "TIMESTAMPTZ"),
    **dict.fromkeys(("binary", "bytea"), "BINARY"),
    **dict.fromkeys(("uuid",), "UUID"),
    **dict.fromkeys(("json",), "JSON"),
    **dict.fromkeys(("decimal", "numeric"), "DECIMAL"),
}
"""Word -> the type as the statement's dataclass has it."""
PRECISION_MAX = 38
INTERVALS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
INTERVAL_MAX = timedelta(days=366)
RETRIES_MAX = 20
SKIP_FILE_MAX = 1_000_000_000

T = TypeVar("T")
OptionReader = Callable[[TokenReader], object]


def take_options(reader: TokenReader, known: Mapping[str, OptionReader]) -> dict[str, Any]:
    """Read options up to the end of the statement, or a closing parenthesis."""
    found: dict[str, object] = {}
    while reader.token is not None and not reader.is_sign(")"):
        wanted = f"an option ({', '.join(sorted(known)).upper()})"
        token = reader.token
        name = reader.take_word(wanted)
        if name not in known:
            reader.fail(wanted, token)
        if name in found:
            reader.fail(f"{name.upper()} only once", token)
        if name == "partition" or name == "partitioned":
            reader.take_words("by")
        elif name != "validate":
            reader.take_sign("=")
        found[name] = known[name](reader)
        reader.skip_sign(",")
    return found


def in_parentheses(reader: TokenReader, take: Callable[[TokenReader], T]) -> tuple[T, ...]:
    """Read `(a, b, c)`; at least one entry."""
    reader.take_sign("(")
    entries = [take(reader)]
    while reader.skip_sign(","):
        if len(entries) >= LIST_MAX:
            raise TooLarge(f"a list may have {LIST_MAX} entries")
        entries.append(take(reader))
    reader.take_sign(")")
    return tuple(entries)


def take_file_format(reader: TokenReader) -> FileFormat:
    """Read `(TYPE=CSV COMPRESSION=AUTO …)`."""
    reader.take_sign("(")
    options = take_options(reader, {"type": _format_type, **FORMAT_OPTIONS})
    if "type" not in options:
        reader.fail(f"TYPE={'|'.join(FORMATS).upper()}")
    reader.take_sign(")")
    return FileFormat(**options)


def _format_type(reader: TokenReader) -> object:
    return reader.take_choice(FORMATS)


def take_pattern(reader: TokenReader) -> str:
    """Read a regular expression for names of files; whether it is one is checked where it runs."""
    pattern = reader.take_string("a regular expression in single quotes")
    if not pattern:
        raise Malformed("PATTERN is empty; leave it out to take all files")
    return pattern


def take_files(reader: TokenReader) -> tuple[str, ...]:
    """Read `('a.json', 'b.json')`, paths below the path of the statement."""
    return in_parentheses(reader, lambda r: r.check_path(r.take_string()))


def take_columns(reader: TokenReader) -> tuple[str, ...]:
    """Read `(a, b)`."""
    return in_parentheses(reader, TokenReader.take_column)


def take_column_specs(reader: TokenReader) -> tuple[ColumnSpec, ...]:
    """Read `(a BIGINT, b DECIMAL(10, 2), c)`."""
    return in_parentheses(reader, _column_spec)


def take_staged_columns(reader: TokenReader) -> tuple[ColumnSpec, ...]:
    """Read `(a BIGINT, b VARCHAR)`, if it comes next: columns of files, each with a type."""
    if not reader.is_sign("("):
        return ()
    columns = take_column_specs(reader)
    for column in columns:
        if not column.type:
            raise Malformed(f"column {column.name} of the files needs a type, such as VARCHAR")
    return columns


def _column_spec(reader: TokenReader) -> ColumnSpec:
    name = reader.take_column()
    if reader.is_sign(",") or reader.is_sign(")"):
        return ColumnSpec(name=name)
    column_type = COLUMN_TYPES[reader.take_choice(tuple(COLUMN_TYPES))]
    if column_type == "DECIMAL":
        reader.take_sign("(")
        precision = reader.take_integer("a precision")
        reader.take_sign(",")
        scale = reader.take_integer("a scale", least=0)
        reader.take_sign(")")
        if precision > PRECISION_MAX or scale > precision:
            raise Malformed(f"DECIMAL has at most {PRECISION_MAX} digits, and a scale below that")
        column_type = f"DECIMAL({precision}, {scale})"
    return ColumnSpec(name=name, type=column_type)


def take_partition_fields(reader: TokenReader) -> tuple[PartitionField, ...]:
    """Read `(day(time), bucket(16, user_id), region)`."""
    return in_parentheses(reader, _partition_field)


def _partition_field(reader: TokenReader) -> PartitionField:
    token = reader.token
    name = reader.take_column()
    if not reader.is_sign("("):
        return PartitionField(column=name)
    if name not in TRANSFORMS or token is None or token.kind != "word":
        reader.fail(f"one of {', '.join(TRANSFORMS)} before a parenthesis", token)
    reader.take_sign("(")
    argument = 0
    if name in ("bucket", "truncate"):
        argument = reader.take_integer("a number")
        reader.take_sign(",")
    column = reader.take_column()
    reader.take_sign(")")
    return PartitionField(column=column, transform=name, argument=argument)  # type: ignore[arg-type]


def take_mapping(reader: TokenReader) -> tuple[tuple[str, str], ...]:
    """Read `(body=message, time=ts)`."""
    pairs = in_parentheses(reader, _pair)
    columns = [column for column, _ in pairs]
    if len(set(columns)) < len(columns):
        raise Malformed("MAPPING names a column twice; each column has one source")
    return pairs


def _pair(reader: TokenReader) -> tuple[str, str]:
    column = reader.take_column()
    reader.take_sign("=")
    return column, reader.take_column()


def take_on_error(reader: TokenReader) -> tuple[str, int]:
    """Read ABORT, CONTINUE, SKIP_FILE or SKIP_FILE_n; return the mode and n."""
    wanted = "one of ABORT, CONTINUE, SKIP_FILE, SKIP_FILE_n"
    token = reader.token
    word = reader.take_word(wanted)
    if word in ("abort", "continue", "skip_file"):
        return word, 1
    number = word.removeprefix("skip_file_")
    if number == word or not (number.isascii() and number.isdecimal()) or len(number) > 10:
        reader.fail(wanted, token)
    if not 1 <= int(number) <= SKIP_FILE_MAX:
        reader.fail(f"SKIP_FILE_n with n from 1 to {SKIP_FILE_MAX}", token)
    return "skip_file", int(number)


def take_interval(reader: TokenReader) -> int:
    """Read `'5 minutes'`; return seconds."""
    wanted = "an interval such as '1 minute' or '12 hours'"
    token = reader.token
    number, _, unit = reader.take_string(wanted).strip().lower().partition(" ")
    seconds = INTERVALS.get(unit.strip().removesuffix("s"))
    if seconds is None or not (number.isascii() and number.isdecimal()) or len(number) > 9:
        reader.fail(wanted, token)
    total = int(number) * seconds
    if not 1 <= total <= INTERVAL_MAX.total_seconds():
        reader.fail(f"an interval between 1 second and {INTERVAL_MAX.days} days", token)
    return total


def take_retries(reader: TokenReader) -> int:
    """Read how often a failed run is tried again."""
    token = reader.token
    retries = reader.take_integer("a number", least=0)
    if retries > RETRIES_MAX:
        reader.fail(f"a number from 0 to {RETRIES_MAX}", token)
    return retries


def take_flag(reader: TokenReader) -> object:
    """Read TRUE or FALSE."""
    return reader.take_boolean()


def take_count(reader: TokenReader) -> object:
    """Read a number from 1 on."""
    return reader.take_integer("a number")


FORMAT_OPTIONS: dict[str, OptionReader] = {
    "compression": lambda reader: reader.take_choice(COMPRESSIONS),
    "header": take_flag,
    "skip_lines": lambda reader: reader.take_integer("a number", least=0),
    "field_delimiter": lambda reader: _one_character(reader),
    "quote": lambda reader: _one_character(reader),
    "escape": lambda reader: _one_character(reader),
    "null_if": lambda reader: in_parentheses(reader, TokenReader.take_string),
    "timestamp_format": TokenReader.take_string,
}


def _one_character(reader: TokenReader) -> str:
    token = reader.token
    value = reader.take_string("one character in single quotes")
    if len(value) != 1 or not value.isascii():
        reader.fail("one ASCII character in single quotes", token)
    return value
