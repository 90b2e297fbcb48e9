"""How far into a unit somebody has heard: never further than the last word that was played whole."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.engines.history import Cut
from voicechart.engines.ports import SpeechUnit
from voicechart.engines.reply_text import Heard, ReplyText
from voicechart.engines.reports import Word
from voicechart.engines.spoken import WordTimes, heard_end

MS = 16


def evenly(*texts: str, word_samples: int = 100, start: int = 0) -> tuple[Word, ...]:
    """Words of the same length, one after another."""
    return tuple(
        Word(text, start + place * word_samples, start + (place + 1) * word_samples) for place, text in enumerate(texts)
    )


def cut(written: str, spoken: str, words: tuple[Word, ...], played_samples: int) -> str | None:
    end = heard_end(written, SpeechUnit(0, spoken, 0, len(written)), words, played_samples)
    return None if end is None else written[:end]


@pytest.mark.parametrize(
    ("played_samples", "heard"),
    [
        (0, None),
        (99, None),
        (100, "Once"),
        (199, "Once"),
        (200, "Once, upon"),
        (299, "Once, upon"),
        (10_000, "Once, upon a"),
    ],
)
def test_the_cut_is_behind_the_last_word_that_was_played_whole(played_samples: int, heard: str | None) -> None:
    assert cut("Once, upon a.", "Once, upon a.", evenly("once", "UPON", "a."), played_samples) == heard


@pytest.mark.parametrize(
    ("written", "spoken", "words", "heard"),
    [
        ("**Bold** and `code` here.", "Bold and code here.", ("Bold", "and", "code"), "**Bold** and `code"),
        ("See [the page](http://the.page/a) now.", "See the page now.", ("See", "the", "page"), "See [the page"),
        ("See [the page](http://x.y/now) now.", "See the page now.", ("See", "the", "page", "now"), "See [the page"),
        ("It's 3:45, don't go.", "It's 3:45, don't go.", ("It's", "3:45,", "do", "n't"), "It's 3:45, don't"),
        ("现在是中午。你好", "现在是中午。你好", ("现在", "是"), "现在是"),
        ("现在是 noon。", "现在是 noon。", ("现", "在", "是", "noon"), "现在是 noon"),
        ("\uff26\uff55ll width", "Full width", ("full",), "\uff26\uff55ll"),
        ("Cafe\u0301 noir", "Cafe\u0301 noir", ("Café",), "Cafe\u0301"),
        ("Die Straße dort", "Die Straße dort", ("die", "strasse"), "Die Straße"),
        ("Wait... what?", "Wait... what?", ("Wait", "…", "what"), "Wait... what"),
    ],
)
def test_words_are_found_in_what_was_written(written: str, spoken: str, words: tuple[str, ...], heard: str) -> None:
    assert cut(written, spoken, evenly(*words), 10_000) == heard


@pytest.mark.parametrize(
    ("written", "spoken", "words", "heard"),
    [
        ("It is 3:45 now.", "It is three forty-five now.", ("It", "is", "three", "forty-five", "now"), "It is"),
        ("It is 3:45 now.", "It is 3:45 now.", ("It", "is", "three", "forty", "five", "now"), "It is"),
        ("12 o'clock.", "twelve o'clock.", ("twelve", "o'clock"), None),
        ("**Bold**ness is [x](http://boldness.com).", "Boldness is x.", ("Boldness",), None),
        ("Once upon.", "Once upon.", ("upon",), None),
    ],
)
def test_where_the_words_are_not_those_that_were_written_the_rest_counts_as_unheard(
    written: str, spoken: str, words: tuple[str, ...], heard: str | None
) -> None:
    assert cut(written, spoken, evenly(*words), 10_000) == heard


def test_the_last_word_times_of_a_unit_replace_those_before() -> None:
    times = WordTimes()
    times.add(1, evenly("one"))
    times.add(1, evenly("two"))
    times.add(1, ())
    assert [word.text for word in times.of(1)] == ["one", "two"]
    times.complete(1, ())
    assert len(times.of(1)) == 2
    times.complete(1, evenly("one", "two", "three"))
    assert [word.text for word in times.of(1)] == ["one", "two", "three"]
    assert times.of(0) == ()


# -- any reply, any words, any position -------------------------------------------------------------------------------

MARKED = ["**bold**", "`code`", "[link](http://a.b/c)", "-", "(so)", "U.S.", "$5", "😀"]
PIECES = st.sampled_from(["Once", "upon", "a", "time", "it's", "3.5", "你好", "世界", "très", "a", *MARKED])
ENDS = st.sampled_from([".", "!", "?", "。", ",", "", "\n\n"])
TEXTS = st.lists(st.tuples(st.lists(PIECES, min_size=1, max_size=9), ENDS), min_size=1, max_size=6).map(
    lambda sentences: " ".join(" ".join(pieces) + end for pieces, end in sentences)
)
OTHER_WORDS = st.sampled_from(["three", "a", "", "…", "Once", "好"])


def letters(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text).casefold() if c.isalnum())


@given(
    written=TEXTS,
    chunk=st.integers(1, 40),
    lengths_ms=st.lists(st.integers(1, 400), min_size=1, max_size=20),
    wrong=st.dictionaries(st.integers(0, 40), OTHER_WORDS, max_size=2),
    played_share=st.floats(0, 1.1),
)
def test_what_is_recorded_is_a_beginning_of_what_was_said_up_to_a_word_that_was_played(
    written: str, chunk: int, lengths_ms: list[int], wrong: dict[int, str], played_share: float
) -> None:
    reply = ReplyText()
    for start in range(0, len(written), chunk):
        reply.append(written[start : start + chunk])
    reply.close()
    times, units, position, count = WordTimes(), list[tuple[int, int]](), 0, 0
    for unit in reply.units:
        start, words = position, list[Word]()
        for text in re.findall(r"\S+", unit.text):
            end = position + lengths_ms[count % len(lengths_ms)] * MS
            words.append(Word(wrong.get(count, str(text)), position, end))
            position, count = end, count + 1
        times.complete(unit.index, tuple(words))
        units.append((start, position))
    played = int(position * played_share)
    confirmed = sum(end <= played for _, end in units)

    whole, heard = reply.heard(confirmed), reply.heard(confirmed, times, played)

    assert whole == Heard(whole.text, Cut.UNIT)
    assert written.strip().startswith(heard.text)
    assert heard.text.startswith(whole.text)
    if heard.cut is Cut.UNIT:
        assert heard == whole
        return
    unit = reply.units[confirmed]
    assert len(heard.text) <= len(written[: unit.source_end].strip())
    spoken_before = letters("".join(known.text for known in reply.units[:confirmed]))
    played_words = [letters(word.text) for word in times.of(unit.index) if word.end_sample <= played]
    possible = {spoken_before + "".join(played_words[: place + 1]) for place in range(len(played_words))}
    projected = ReplyText()
    projected.append(heard.text)
    projected.close()
    assert letters("".join(known.text for known in projected.units)) in possible


def test_without_a_position_or_without_words_whole_units_count() -> None:
    reply = ReplyText()
    reply.append("It is noon already. It is time for lunch.")
    reply.close()
    times = WordTimes()
    assert reply.heard(1, times, 10_000) == Heard("It is noon already.", Cut.UNIT)
    times.complete(1, evenly("It", "is"))
    assert reply.heard(1, times, 10_000) == Heard("It is noon already. It is", Cut.WORD)
    assert reply.heard(1, times, None) == Heard("It is noon already.", Cut.UNIT)
    assert reply.heard(2, times, 10_000) == Heard("It is noon already. It is time for lunch.", Cut.UNIT)
