"""The rules that tell a finished utterance from one that goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.adapters.local.end_of_turn import EndOfTurnWaits, RuleBasedEndOfTurn, probability_of_end
from voicechart.engines.end_of_turn import TurnSoFar
from voicechart.statecharts.policies import PolicyError

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "end_of_turn.py"


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, str(BENCHMARK), "--json"], capture_output=True, text=True, check=True, timeout=50
    )
    return json.loads(ran.stdout)


@pytest.mark.parametrize("part", ["en", "zh", "seen", "unseen"])
def test_the_rules_beat_calling_everything_finished(figures: dict[str, Any], part: str) -> None:
    rules, baseline = figures["rules"][part], figures["baseline"][part]
    assert rules["accuracy"] >= baseline["accuracy"] + 0.25
    assert rules["precision"] >= baseline["precision"] + 0.2
    assert rules["recall"] >= 0.9


def test_the_list_is_long_enough_and_in_both_languages(figures: dict[str, Any]) -> None:
    assert figures["rules"]["all"]["utterances"] >= 120
    assert min(figures["rules"][language]["utterances"] for language in ("en", "zh")) >= 60


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("I went to the shop and", False),
        ("Um", False),
        ("my phone number is 555", False),
        ("my phone number is 5551234", True),
        ("set a timer for ten", False),
        ("set a timer for ten minutes", True),
        ("Where are you from?", True),
        ("turn on", False),
        ("turn it on", True),
        ("if it rains", False),
        ("when is the next train", True),
        ("could you please", False),
        ("yes, please", True),
        ("I think,", False),
        ("你吃饭了吗", True),
        ("我们走吧", True),
        ("然后", False),
        ("我想要一个红色的", False),
        ("好的", True),
        ("如果明天下雨", False),
        ("我的电话号码是一三八", False),
        ("这个\uff0c", False),
    ],
)
def test_what_the_last_words_leave_open_is_waited_for(text: str, finished: bool) -> None:
    assert (probability_of_end(text) >= 0.5) is finished


def test_the_language_may_be_told_instead_of_guessed() -> None:
    assert probability_of_end("OK", "zh-CN") >= 0.5
    assert probability_of_end("and", "en-GB") < 0.5


@given(st.text(max_size=80))
def test_any_text_has_a_probability(text: str) -> None:
    assert 0 <= probability_of_end(text) <= 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "wait_ms"), [("what time is it", 100), ("i had pasta for lunch", 200), ("because", 300), (" ", 400)]
)
async def test_the_wait_follows_from_how_finished_the_words_sound(text: str, wait_ms: int) -> None:
    judge = RuleBasedEndOfTurn(EndOfTurnWaits(100, 200, 300, 400))
    await judge.prepare()
    assert (await judge.judge(TurnSoFar(text, 64.0))).wait_ms == wait_ms


@pytest.mark.parametrize("name", ["finished_ms", "likely_ms", "unfinished_ms", "unheard_ms"])
@pytest.mark.parametrize("value", [-1, 10_001])
def test_a_wait_outside_its_bounds_is_refused(name: str, value: int) -> None:
    with pytest.raises(PolicyError, match=name):
        EndOfTurnWaits(**{name: value})
