from __future__ import annotations

from voicechart.adapters.providers.synthesis import AlignedLetters
from voicechart.audio.formats import AudioFormat
from voicechart.engines.reports import Word

MS = AudioFormat(8_000).samples_for_ms(1)


def letters() -> AlignedLetters:
    return AlignedLetters(AudioFormat(8_000))


def test_a_word_may_be_parted_between_messages_whose_times_count_from_their_own_audio() -> None:
    unit = letters()
    assert unit.feed(list("It is n"), range(7), [1] * 7) == (Word("It", 0, 2 * MS), Word("is", 3 * MS, 5 * MS))
    unit.advance(bytes(2 * 7 * MS))
    assert unit.feed(list("oon."), range(4), [1] * 4) == ()
    assert unit.close() == (Word("noon.", 6 * MS, 11 * MS),)
    assert unit.close() == ()


def test_wide_characters_are_words_and_end_the_one_before() -> None:
    words = letters().feed(list("OK你好"), range(4), [1] * 4)
    assert [word.text for word in words] == ["OK", "你", "好"]


def test_letters_without_times_give_no_words_and_end_the_one_that_was_begun() -> None:
    unit = letters()
    unit.feed(["a"], [0], [1])
    assert unit.feed(["b", "c"], [0], [1, 1]) == (Word("a", 0, MS),)
    assert unit.close() == ()


def test_times_before_the_beginning_count_as_the_beginning() -> None:
    unit = letters()
    unit.feed(["a"], [-5], [-1])
    assert unit.close() == (Word("a", 0, 0),)
