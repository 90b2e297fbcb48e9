"""Words, joined texts, identities, errors: the small pure parts of the charts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.statecharts import SeededIds
from voicechart.statecharts.context import join_texts
from voicechart.statecharts.errors import ErrorScope, ScopedError
from voicechart.statecharts.policies import words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        ("  ...  ", ()),
        ("Stop it!", ("stop", "it")),
        ("don't — I'm", ("don't", "i'm")),
        ("l’école", ("l’école",)),
        ("3 o'clock", ("3", "o'clock")),
        ("停一下", ("停", "一", "下")),
        ("ok停", ("ok", "停")),
        ("やめて", ("や", "め", "て")),
        ("그만", ("그", "만")),
        ("嗯、好的。", ("嗯", "好", "的")),
    ],
)
def test_words_are_lower_case_without_punctuation_and_one_a_character_in_east_asian_writing(
    text: str, words: tuple[str, ...]
) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("pieces", "joined"),
    [
        ([], ""),
        (["", "  "], ""),
        (["hello", "there"], "hello there"),
        ([" hello ", "", "there "], "hello there"),
        (["你好", "世界"], "你好世界"),
        (["你好、", "世界"], "你好、世界"),
        (["你好", "John"], "你好 John"),
        (["John", "你好"], "John 你好"),
        (["こん", "にちは"], "こんにちは"),
    ],
)
def test_pieces_are_joined_as_their_writing_joins_words(pieces: list[str], joined: str) -> None:
    assert join_texts(pieces) == joined


@given(st.lists(st.text(alphabet="ab 你好、", max_size=6), max_size=6))
def test_joining_loses_no_word_and_adds_none(pieces: list[str]) -> None:
    assert words_of(join_texts(pieces)) == tuple(word for piece in pieces for word in words_of(piece))


def test_identities_are_readable_unique_for_a_seed_and_the_same_again() -> None:
    ids = SeededIds("kitchen")
    minted = [ids.mint(kind, ordinal) for kind in ("turn", "run") for ordinal in range(200)]
    assert len(set(minted)) == 400
    assert minted == [SeededIds("kitchen").mint(kind, n) for kind in ("turn", "run") for n in range(200)]
    assert minted[3].startswith("turn-3-")
    assert ids.mint("turn", 3) != SeededIds("hall").mint("turn", 3)


def test_an_error_reads_as_where_and_what() -> None:
    error = ScopedError("speaker_lost", "playback", ErrorScope.SESSION, "restart the audio service")
    assert str(error) == "playback/speaker_lost: restart the audio service"
