"""The SQL function `matches`."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import Malformed, TooLarge
from frazil.query.functions.text_scan import match_column
from frazil.query.functions.text_search import AND, NOT, OR, Search, Word, parse
from frazil.query.functions.word_split import folded, words_of

BODY = "Payment of user_7 timed-out: connection refused by 10.0.0.1 (ÜBER Größe 支付失败)"


def finds(search: str, text: str | None = BODY) -> bool | None:
    found: bool | None = match_column(pa.array([text], pa.string()), parse(search))[0].as_py()
    return found


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("payment", True),
        ("PAYMENT", True),
        ("pay", False),
        ("pay*", True),
        ("payment*", True),
        ("payments*", False),
        ("user_7", True),
        ("user", False),
        ("user*", True),
        ("refused payment", True),
        ("refused nothing", False),
        ("nothing OR refused", True),
        ("nothing OR void", False),
        ("payment AND (nothing OR refused)", True),
        ("payment (nothing OR void)", False),
        ("NOT nothing", True),
        ("NOT payment", False),
        ("payment NOT refused", False),
        ("payment NOT test", True),
        ("NOT (payment nothing)", True),
        ("NOT NOT payment", True),
        ('"connection refused"', True),
        ('"refused connection"', False),
        ('"connection by"', False),
        ('"CONNECTION  refused, by"', True),
        ("timed-out", True),
        ("out-timed", False),
        ("timed-o*", True),
        ("10.0.0.1", True),
        ("10.0.1", False),
        ("über", True),
        ("GRÖSSE", False),
        ("größe", True),
        ("支付", True),
        ("支付失败", True),
        ("支失", False),
        ("a OR b AND payment", False),
        ("payment OR a AND b", True),
        ("and", False),
        ("or payment", False),
        ("payment AND NOT (a OR b) refused", True),
    ],
)
def test_a_search_matches(search: str, expected: bool) -> None:
    """Words in any case, phrases, prefixes and operators; AND binds tighter than OR."""
    assert finds(search) is expected


def test_null_does_not_match() -> None:
    assert finds("NOT x", None) is None
    assert finds("x", "") is False
    assert finds("NOT x", "") is True


@pytest.mark.parametrize(
    ("search", "place", "what"),
    [
        ("", 1, "a word is missing"),
        ("   ", 4, "a word is missing"),
        ("a AND", 6, "a word is missing"),
        ("OR a", 1, "a word is missing"),
        ("a OR OR b", 6, "a word is missing"),
        ("(a", 1, "this ( is not closed"),
        ("a)", 2, "no ( for this )"),
        ("a ()", 4, "a word is missing"),
        ('a "b c', 3, 'closing " is missing'),
        ('a ""', 3, "no letter or digit"),
        ("a -- b", 3, "no letter or digit"),
        ("*", 1, "no letter or digit"),
        ("a*b", 1, "may only end a word"),
        ("a.*", 1, "must follow a letter"),
        ("(" * 40 + "a" + ")" * 40, 34, "at most 32 nested"),
    ],
)
def test_a_malformed_search_has_the_position(search: str, place: int, what: str) -> None:
    with pytest.raises(Malformed, match=re.escape(what)) as caught:
        parse(search)
    assert f"(character {place} of the search)" in str(caught.value)
    assert (caught.value.begin, caught.value.end) == (0, None), (
        "positions are those of the SQL text"
    )


def test_signs_of_the_search_box_only_separate_words() -> None:
    """`matches` has no fields, no `-` for NOT and no escapes: see docs/decisions/0016."""
    assert parse("-a") == parse("a")
    assert parse("a:b") == parse("a:>b") == parse('"a b"')
    assert parse('a"b c"d') == parse('a "b c" d')
    with pytest.raises(Malformed, match='closing " is missing'):
        parse(r'"a\"b"')


def test_too_many_words_are_rejected() -> None:
    """Each word has a bit; there are 64."""
    assert finds(" OR ".join(f"w{n}" for n in range(63)) + " OR payment") is True
    with pytest.raises(TooLarge, match="65 words"):
        parse(" ".join(f"w{n}" for n in range(65)))


def reference(text: str, search: Search) -> bool:
    """Split into words, search for each phrase, evaluate the program."""
    words = words_of(text)
    stack: list[bool] = []
    for step in search.program:
        if step == NOT:
            stack.append(not stack.pop())
        elif step in (AND, OR):
            right, left = stack.pop(), stack.pop()
            stack.append(left and right if step == AND else left or right)
        else:
            phrase = search.phrases[step]
            starts = range(len(words) - len(phrase) + 1)
            stack.append(any(fits(words[at:], phrase) for at in starts))
    return stack.pop()


def fits(words: list[str], phrase: tuple[Word, ...]) -> bool:
    return all(
        given.startswith(word.text) if word.is_prefix else given == word.text
        for given, word in zip(words, phrase, strict=False)
    )


TEXTS = st.text(st.sampled_from("aAbBc1_ .-äÄ支付\n"), max_size=24)
ATOMS = st.one_of(
    st.text("abc1_ä", min_size=1, max_size=3),
    st.text("abc1", min_size=1, max_size=2).map(lambda word: f"{word}*"),
    st.text("ab .", min_size=1, max_size=5).map(lambda text: f'"a{text}"'),
    st.sampled_from(["a-b", "支付", "支", "B.a*"]),
)
SEARCHES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(" ".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]} OR {two[1]})"),
        inner.map(lambda one: f"NOT ({one})"),
    ),
    max_leaves=8,
)


@given(st.lists(st.none() | TEXTS, max_size=6), SEARCHES, st.integers(0, 5))
def test_the_scanner_agrees_with_the_reference(
    texts: list[str | None], search: str, skip: int
) -> None:
    """On any texts, sliced or not."""
    parsed = parse(search)
    column = pa.array(texts, pa.string())[skip:]
    expected = [None if text is None else reference(text, parsed) for text in texts[skip:]]
    assert match_column(column, parsed).to_pylist() == expected


@given(st.text())
def test_every_word_of_a_text_is_found_in_it(text: str) -> None:
    """Texts and columns are folded in the same way."""
    words = words_of(text)
    column = pa.array([text])
    for word in words[:3]:
        assert words_of(folded(word))
        phrase = tuple(Word(text=part) for part in words_of(word))
        assert match_column(column, Search(phrases=(phrase,), program=(0,))).to_pylist() == [True]
