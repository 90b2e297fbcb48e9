"""Spoken text: what is said, where it may be cut, and that chunking changes nothing."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voicechart.engines.ports import SpeechUnit
from voicechart.engines.spoken import SpokenTextProjection


def units_of(text: str, *cuts: int) -> list[SpeechUnit]:
    """The units of `text`, fed in pieces that end at `cuts`."""
    projection = SpokenTextProjection()
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    units = [unit for start, end in pairwise(places) for unit in projection.feed(text[start:end])]
    return [*units, *projection.close()]


def said(text: str) -> list[str]:
    return [unit.text for unit in units_of(text)]


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("It is noon today. Time for lunch now.", ["It is noon today.", "Time for lunch now."]),
        ("Yes. I will do that for you.", ["Yes. I will do that for you."]),
        ("Ask Dr. Smith at 3 p.m. about it.", ["Ask Dr. Smith at 3 p.m. about it."]),
        ("It costs 3.50 at 10:30. Really, it does!", ["It costs 3.50 at 10:30.", "Really, it does!"]),
        ("I like J. S. Bach very much. He is fine.", ["I like J. S. Bach very much.", "He is fine."]),
        ("Well... then we wait here. All of us wait.", ["Well... then we wait here.", "All of us wait."]),
        ("Once upon a time, there was a clock.", ["Once upon a time, there was a clock."]),
        (
            "Once upon a time, in a small town by the sea, there was a clock.",
            ["Once upon a time, in a small town by the sea,", "there was a clock."],
        ),
        ("你好，我是小明。再见！", ["你好，我是小明。", "再见！"]),  # noqa: RUF001
        ("他说：“好的。”然后走了。", ["他说：“好的。”", "然后走了。"]),  # noqa: RUF001
        ("Use `a.b. c` here. Then go on with it.", ["Use a.b. c here.", "Then go on with it."]),
        ("First this one.\n\n```py\nx = 1. 5\n```\n\nThen that one.", ["First this one.", "Then that one."]),
        ("See [the docs. here](http://a.b/c.d?e=f) for more.", ["See the docs. here for more."]),
        ("Look at https://example.org/a.b?c=d. It is good.", ["Look at", "It is good."]),
        ("**Bold. text** and *more* of it.", ["Bold. text and more of it."]),
        ("# Title\n\n- one thing\n- another thing", ["Title", "one thing", "another thing"]),
        ("1. first of all. 2. second", ["first of all.", "second"]),
        ("The sum $x+y$ is it. And $$\\int_0^1 x$$ is not.", ["The sum x+y is it.", "And is not."]),
        ("<think>Hmm. Let me see.\n\nOK.</think>The answer is four.", ["The answer is four."]),
        ("<tts>Hello there, my friend.</tts>", ["Hello there, my friend."]),
        ("<tts>Hello there, my friend.", ["Hello there, my friend."]),
        ('Sure. {"name": "lamp", "args": {"on": "a. b"}} Done with it.', ["Sure. Done with it."]),
        ("😀 Hello there 👨‍👩‍👧. How are you today?", ["Hello there .", "How are you today?"]),
        ("```\nnothing but code. really\n```", []),
        ("---", []),
    ],
)
def test_what_is_written_is_said_in_safe_units(written: str, spoken: list[str]) -> None:
    assert said(written) == spoken


FRAGMENTS = st.sampled_from(
    [
        "Hello there. ",
        "How are you? ",
        "Dr. Smith ",
        "3.14 ",
        "1,000.5 ",
        "10:30 ",
        "e.g. this ",
        "Wait... ",
        "no ",
        "a b c d e f g h ",
        "\n",
        "\n\n",
        "**bold. text** ",
        "_x_ ",
        "`code. here` ",
        "`open ",
        "(x. y) ",
        "é",
        "ß",
        "```\nfenced. code\n```\n",
        "[a. b](http://c.d/e) ",
        "[open. ",
        "https://a.b/c.d?e=f. ",
        "www.x.yz ",
        "h",
        "ht",
        "$x. y$ ",
        "$5 ",
        "$$\\frac{1}. {2}$$",
        "\\(a. b\\)",
        "<b>",
        "</b>",
        "<think>",
        "</think>",
        "<tts>",
        "</tts>",
        "<",
        '{"tool": "x. y", "n": {"a": "}"}}',
        '{"open": "a. ',
        "{",
        "# Head\n",
        "- item. one\n",
        "12. item\n",
        "> quote. d\n",
        "你好。",
        "再见！”",  # noqa: RUF001
        "我有3.5元，",  # noqa: RUF001
        "“是的。”",
        "😀",
        "👨‍👩‍👧",
        "…",
        "``",
        "~~~\n",
        "$",
    ]
)
TEXTS = st.one_of(st.lists(FRAGMENTS, max_size=20).map("".join), st.text(max_size=200))


@pytest.mark.slow
@settings(max_examples=400)
@given(text=TEXTS, cuts=st.lists(st.integers(0, 4_000), max_size=40))
def test_the_same_text_gives_the_same_units_however_it_is_chunked(text: str, cuts: list[int]) -> None:
    assert units_of(text, *cuts) == units_of(text)


@pytest.mark.slow
@settings(max_examples=3000)
@given(text=TEXTS)
def test_one_character_at_a_time_gives_the_same_units(text: str) -> None:
    assert units_of(text, *range(len(text))) == units_of(text)


@given(text=TEXTS)
def test_units_are_numbered_and_their_ranges_follow_each_other(text: str) -> None:
    end = 0
    for number, unit in enumerate(units_of(text)):
        assert unit.index == number
        assert unit.text.strip() == unit.text != ""
        assert end <= unit.source_start < unit.source_end <= len(text)
        end = unit.source_end


WHOLE = ["3.14", "1,000.5", "10:30", "https://a.b/c.d?e=f", "👨‍👩‍👧", "`code. here`", "[a. b](http://c.d/e)", "e.g."]


@settings(max_examples=300)
@given(
    before=st.lists(st.sampled_from(["One two three. ", "你好。", "And so on, ", "x\n\n"]), max_size=6).map("".join),
    whole=st.sampled_from([*WHOLE, "$x. y$", "<b class='x. y'>", '{"a": "b. c"}', "```\nx. y\n```"]),
    after=st.sampled_from([" is it. Next one here.", " 好。再见。", ". End of it.", ""]),
)
def test_no_unit_cuts_what_belongs_together(before: str, whole: str, after: str) -> None:
    text = f"{before}\n{whole}{after}"
    start = text.index(whole, len(before))
    for unit in units_of(text):
        for cut in (unit.source_start, unit.source_end):
            assert not start < cut < start + len(whole)


@given(text=TEXTS)
def test_code_reasoning_and_json_are_never_said(text: str) -> None:
    marked = f"{text}\n\n```\nsecretcode\n```\n\n<think>secretthought</think>\n\n" + '{"secretkey": 1}\n'
    spoken = " ".join(said(marked))
    if not re.search(r"`|~|<|\{|\$|\[|\\", text):
        assert "secret" not in spoken


def test_a_long_run_without_an_end_is_cut_at_a_clause_or_a_space() -> None:
    first, *rest = said("word " * 30 + "and then, " + "word " * 60)
    assert first.endswith("and then,")
    assert all(len(unit) <= 260 for unit in rest)


def test_a_spoken_form_is_applied_to_what_is_said_and_not_to_what_was_written() -> None:
    projection = SpokenTextProjection(lambda spoken: spoken.replace("3", "three"))
    (unit,) = [*projection.feed("I have 3 of them."), *projection.close()]
    assert (unit.text, unit.source_start, unit.source_end) == ("I have three of them.", 0, 17)
