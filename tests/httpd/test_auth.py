"""Auth: valid tokens pass, wrong ones are refused after a pause."""

from __future__ import annotations

import asyncio

import pytest

from frazil.errors import Overloaded, Unauthenticated
from frazil.httpd import auth as auth_module
from frazil.httpd.auth import DENIED, PAUSED_MAX, Auth

TOKENS = (b"0123456789abcdef", b"fedcba9876543210")
AUTH = Auth(tokens=TOKENS)


@pytest.mark.parametrize(
    ("authorization", "wanted"),
    [
        ("Bearer 0123456789abcdef", True),
        ("Bearer fedcba9876543210", True),
        ("bearer 0123456789abcdef", True),
        ("BEARER  0123456789abcdef ", True),
        (None, False),
        ("", False),
        ("Bearer", False),
        ("Bearer ", False),
        ("Bearer 0123456789abcde", False),
        ("Bearer 0123456789abcdefg", False),
        ("Bearer 0123456789abcdef fedcba9876543210", False),
        ("Bearer 0123456789ABCDEF", False),
        ("Basic 0123456789abcdef", False),
        ("0123456789abcdef", False),
        ("Bearer 0123456789abcdéf", False),
        ("Bearer \udcff", False),
    ],
)
def test_only_a_valid_token_passes(authorization: str | None, wanted: bool) -> None:
    """The whole token, after the word Bearer, and nothing else."""
    assert AUTH.knows(authorization) is wanted


def test_without_tokens_every_request_passes() -> None:
    """The address or client certificates then decide who can connect."""
    assert Auth().knows(None)


def test_wrong_tokens_are_delayed_and_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong token is answered after a pause; beyond a limit, at once and retryable."""
    monkeypatch.setattr(auth_module, "PAUSE_S", 0.05)
    auth, denied = Auth(tokens=TOKENS), DENIED.value()

    async def guess_all() -> list[BaseException | None]:
        guesses = (auth.deny(None) for _ in range(PAUSED_MAX + 10))
        return list(await asyncio.gather(*guesses, return_exceptions=True))

    answers = asyncio.run(guess_all())
    assert sum(isinstance(answer, Unauthenticated) for answer in answers) == PAUSED_MAX
    assert sum(isinstance(answer, Overloaded) for answer in answers) == 10
    assert DENIED.value() == denied + PAUSED_MAX + 10
    with pytest.raises(Unauthenticated, match="Authorization: Bearer"):
        asyncio.run(auth.deny(None))  # the pauses are over
