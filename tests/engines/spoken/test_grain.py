"""How much goes to a synthesiser at a time, by what it can take."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.engines.ports import SpeechUnit
from voicechart.engines.spoken import SpokenTextProjection, UnitGrain, grain_for
from voicechart.engines.spoken.projection import WHOLE_CHARS
from voicechart.statecharts.capabilities import SynthesizerCapabilities

STORY = "Once upon a time, in a small town, there was a clock. It struck, and nobody heard it, for years. The end."
CHINESE_CLAUSES = ["从前有一座很小的城市，", "城里有一座钟。", "它敲响了很多次，", "可是没有人听见。", "完了。"]  # noqa: RUF001
CHINESE = "".join(CHINESE_CLAUSES)


def units_of(grain: UnitGrain, text: str, *cuts: int) -> list[SpeechUnit]:
    projection = SpokenTextProjection(grain=grain)
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    units = [unit for start, end in pairwise(places) for unit in projection.feed(text[start:end])]
    return [*units, *projection.close()]


@pytest.mark.parametrize(
    ("capabilities", "grain"),
    [
        (SynthesizerCapabilities(incremental_text=True), UnitGrain.CLAUSE),
        (SynthesizerCapabilities(incremental_text=True, sentence_input=False), UnitGrain.CLAUSE),
        (SynthesizerCapabilities(), UnitGrain.SENTENCE),
        (SynthesizerCapabilities(sentence_input=False), UnitGrain.WHOLE),
    ],
)
def test_a_synthesiser_gets_the_finest_that_it_can_take(
    capabilities: SynthesizerCapabilities, grain: UnitGrain
) -> None:
    assert grain_for(capabilities) is grain


FIRST, SECOND, THIRD = "Once upon a time,", "in a small town,", "there was a clock."
LATER = "It struck, and nobody heard it,"


@pytest.mark.parametrize(
    ("grain", "text", "spoken"),
    [
        (UnitGrain.CLAUSE, STORY, [FIRST, SECOND, THIRD, LATER, "for years. The end."]),
        (UnitGrain.SENTENCE, STORY, [f"{FIRST} {SECOND}", THIRD, f"{LATER} for years.", "The end."]),
        (UnitGrain.WHOLE, STORY, [STORY]),
        (UnitGrain.CLAUSE, CHINESE, CHINESE_CLAUSES),
        (UnitGrain.WHOLE, CHINESE, [CHINESE]),
        (UnitGrain.WHOLE, "Yes.\n\n好的。\n```\nx\n```\nDone now.", ["Yes. 好的。 Done now."]),
        (UnitGrain.WHOLE, "```\nnothing\n```", []),
    ],
)
def test_units_are_as_large_as_the_synthesiser_takes_them(grain: UnitGrain, text: str, spoken: list[str]) -> None:
    assert [unit.text for unit in units_of(grain, text)] == spoken


def test_a_long_reply_goes_in_groups_of_whole_sentences() -> None:
    sentence = "This is one more sentence of a reply that goes on and on. "
    projection = SpokenTextProjection(grain=UnitGrain.WHOLE)
    count = 3 * WHOLE_CHARS // len(sentence)
    units = [unit for _ in range(count) for unit in projection.feed(sentence)]
    assert [unit.index for unit in units] == [0, 1]
    units += projection.close()
    assert [unit.index for unit in units] == [0, 1, 2]
    assert all(unit.text.endswith(".") for unit in units)
    assert all(WHOLE_CHARS <= len(unit.text) < WHOLE_CHARS + len(sentence) for unit in units[:2])
    assert " ".join(unit.text for unit in units) == (sentence * count).strip()


def test_what_waits_for_more_can_be_had_at_once() -> None:
    projection = SpokenTextProjection(grain=UnitGrain.WHOLE)
    assert projection.flush() == []
    assert projection.feed("It is noon already. And so") == []
    assert projection.flush() == [SpeechUnit(0, "It is noon already.", 0, 19)]
    assert projection.close() == [SpeechUnit(1, "And so", 19, 26)]


PIECES = ["Hello there, my friend. ", "3.14, ", "你好，", "再见。", "**bold, text** ", "`a, b` ", "no, ", "\n\n"]  # noqa: RUF001
TEXTS = st.lists(st.sampled_from(PIECES)).map("".join)


@given(text=TEXTS, cuts=st.lists(st.integers(0, 400), max_size=20), grain=st.sampled_from(UnitGrain))
def test_every_grain_says_the_same_however_it_is_chunked(text: str, cuts: list[int], grain: UnitGrain) -> None:
    units = units_of(grain, text, *cuts)
    assert units == units_of(grain, text)
    sentences = units_of(UnitGrain.SENTENCE, text)
    assert "".join(unit.text for unit in units).replace(" ", "") == "".join(unit.text for unit in sentences).replace(
        " ", ""
    )
    assert [unit.index for unit in units] == list(range(len(units)))
    ends = [0, *(unit.source_end for unit in units)]
    assert all(end <= unit.source_start < unit.source_end for end, unit in zip(ends, units, strict=False))
