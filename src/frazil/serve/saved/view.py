"""SavedView: the state of a screen of the web page, such as a search with its time range.

The page interprets the parameters: a screen ignores what it does not know.
"""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from frazil.errors import Malformed
from frazil.model import doc

ADDRESS_CHARS_MAX = 8000
"""Length of all parameters as an address, which browsers and servers accept."""
WITH_ID = ("trace", "dashboard")

Title = Annotated[str, Meta(min_length=1, max_length=200)]
Name = Annotated[str, Meta(min_length=1, max_length=64)]
Text = Annotated[str, Meta(max_length=ADDRESS_CHARS_MAX)]


class SavedView(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The state of a screen."""

    format: Annotated[Literal[1], doc("Version of the file format.")]
    title: Title
    description: Annotated[str, Meta(max_length=2000)] = ""
    screen: Annotated[
        Literal["logs", "traces", "trace", "services", "explore", "dashboard", "volume"],
        doc("Screen, as in the address of the page."),
    ]
    id: Annotated[
        str, Meta(max_length=200, description="Trace or dashboard; empty for others.")
    ] = ""
    params: Annotated[
        dict[Name, Annotated[tuple[Text, ...], Meta(min_length=1, max_length=200)]],
        Meta(
            max_length=64,
            description="Parameters of the address, each with its values: search, time range, "
            "columns and so on.",
        ),
    ] = {}

    def check(self) -> None:
        """Check rules across fields. `Malformed` if one is violated."""
        if (self.screen in WITH_ID) != (self.id != ""):
            needs = "needs the id of one" if self.id == "" else "has no id; remove it"
            raise Malformed(f"id is {self.id!r}: a view of the screen {self.screen} {needs}")
        length = len(urlencode(self.params, doseq=True))
        if length > ADDRESS_CHARS_MAX:
            raise Malformed(
                f"params make an address of {length} characters; the limit is {ADDRESS_CHARS_MAX}"
            )
