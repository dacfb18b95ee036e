"""Connectors in statements: CREATE SOURCE and CREATE SINK.

    CREATE SOURCE s TYPE files FOLDER='/var/log/shop' PATTERN='*.log' INTO TOPIC 'shop_lines'
    CREATE SINK s TYPE http CONNECTION=c BATCH_RECORDS=100 FROM TOPIC 'orders'

Which options there are, and of which type, is known to the connector alone.
"""

from __future__ import annotations

from typing import Any

from frazil.definitions.options import in_parentheses
from frazil.definitions.statements import ConnectorOption, CreateSink, CreateSource
from frazil.definitions.token_reader import TokenReader
from frazil.errors import Malformed

OPTIONS_MAX = 100


def take_create_source(reader: TokenReader, or_replace: bool) -> CreateSource:
    """Read `name TYPE type [CONNECTION=name] [NAME=value …] INTO TOPIC 'x'`."""
    return CreateSource(or_replace=or_replace, **_connector(reader, "a source", "into"))


def take_create_sink(reader: TokenReader, or_replace: bool) -> CreateSink:
    """Read `name TYPE type [CONNECTION=name] [NAME=value …] FROM TOPIC 'x'`."""
    return CreateSink(or_replace=or_replace, **_connector(reader, "a sink", "from"))


def _connector(reader: TokenReader, what: str, before_topic: str) -> dict[str, Any]:
    name = reader.take_name(what)
    reader.take_words("type")
    kind = reader.take_name("a connector type")
    connection, options = _options(reader, before_topic)
    reader.take_words(before_topic, "topic")
    topic = reader.take_string("a topic in single quotes")
    return {
        "name": name,
        "type": kind,
        "topic": topic,
        "connection": connection,
        "options": options,
    }


def _options(reader: TokenReader, end: str) -> tuple[str, tuple[tuple[str, ConnectorOption], ...]]:
    """Read options up to the word `end`; return the connection, and the others."""
    connection = ""
    found: dict[str, ConnectorOption] = {}
    while not reader.is_word(end):
        token = reader.token
        name = reader.take_word(f"NAME=value, or {end.upper()} TOPIC '…'")
        if name in found or (name == "connection" and connection):
            reader.fail(f"{name.upper()} only once", token)
        if len(found) >= OPTIONS_MAX:
            raise Malformed(f"a connector may have {OPTIONS_MAX} options")
        reader.take_sign("=")
        if name == "connection":
            connection = reader.take_name("a connection")
        else:
            found[name] = _value(reader)
        reader.skip_sign(",")
    return connection, tuple(found.items())


def _value(reader: TokenReader) -> ConnectorOption:
    wanted = "a text in single quotes, a word, a number, TRUE, FALSE or a list of texts"
    if reader.is_string():
        return reader.take_string(wanted)
    if reader.is_sign("("):
        return in_parentheses(reader, TokenReader.take_string)
    sign = -1 if reader.skip_sign("-") else 1
    if reader.is_integer():
        token = reader.token
        text = reader.take_number(wanted)
        try:
            return sign * (int(text) if text.isdecimal() else float(text))
        except ValueError:
            reader.fail(wanted, token)
    if sign < 0:
        reader.fail("a number")
    word = reader.take_word(wanted)
    return word == "true" if word in ("true", "false") else word
