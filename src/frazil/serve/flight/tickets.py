"""What a ticket has. A query is complete in its ticket: whoever has it can read it again, also from
a reader process that was restarted in between. A statement is carried out once."""

from __future__ import annotations

import msgspec

from frazil.errors import Malformed, TooLarge
from frazil.serve.flight.messages import message_of, wrapped

TEXTS_BYTES_MAX = 1024 * 1024
"""Of all texts of a ticket: a query, once per row of its parameters."""


class QueryTicket(msgspec.Struct, frozen=True, array_like=True):
    """The texts to run, one after the other."""

    number: bytes
    """Names the stream, for its cancellation."""
    texts: tuple[str, ...]


_DECODER = msgspec.msgpack.Decoder(QueryTicket)


def check_length(*texts: str) -> None:
    """Raise `TooLarge` if texts are too long for a ticket."""
    if sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) > TEXTS_BYTES_MAX:
        raise TooLarge(
            f"the text, with its values in it, has more than {TEXTS_BYTES_MAX} bytes; bind fewer "
            "rows at once, or send less"
        )


def ticket_bytes(ticket: QueryTicket) -> bytes:
    """Return the bytes of a ticket. `TooLarge` if its texts are too long."""
    check_length(*ticket.texts)
    return wrapped(
        message_of("TicketStatementQuery", statement_handle=msgspec.msgpack.encode(ticket))
    )


def parse_ticket(handle: bytes) -> QueryTicket:
    try:
        return _DECODER.decode(handle)
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise Malformed("the ticket is not one of this node; ask for the query again") from None
