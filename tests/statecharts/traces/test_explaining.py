from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from voicechart.statecharts import Conversation, ConversationChart, InterruptionPolicy, Moment, Policies, Verdict
from voicechart.statecharts.actions import Stamp
from voicechart.statecharts.chart import Chart
from voicechart.statecharts.charts import conversation_chart
from voicechart.statecharts.context import TimerKind
from voicechart.statecharts.facts import Fact, OpenRequested, TimerFired
from voicechart.statecharts.synthesis import Synthesis, SynthesizerEnded, TextEnded
from voicechart.statecharts.testing import ScriptedConversation
from voicechart.statecharts.traces import (
    Fate,
    Trace,
    TraceEncoder,
    TraceError,
    details_of,
    explain,
    parse_trace,
    sentence_of,
)
from voicechart.statecharts.values import InterruptionSource


class Recording:
    """Records a chart from now on."""

    def __init__(self, chart: Chart[Any]) -> None:
        encoder = TraceEncoder(chart, None)
        self._lines = [encoder.header(1, chart.snapshot())]
        chart.observe(lambda step: self._lines.append(encoder.record(len(self._lines), step)))

    def trace(self) -> Trace:
        return parse_trace("".join(self._lines).encode())


@pytest.fixture
def traced(
    make_conversation: Callable[[], Conversation], drive_to_an_interruption: Callable[[Conversation], None]
) -> Trace:
    conversation = make_conversation()
    recording = Recording(conversation)
    drive_to_an_interruption(conversation)
    return recording.trace()


def sentence(trace: Trace, number: int) -> str:
    return sentence_of(trace, explain(trace, number))


def test_an_accepted_fact_names_every_region_its_guards_and_what_followed(traced: Trace) -> None:
    explanation = explain(traced, 9)
    assert explanation.fate is Fate.ACCEPTED
    assert [line.region for line in explanation.tried if line.enabled] == ["input_turn"]
    assert [taken.event for taken in explanation.followed] == ["turn_admitted"]
    assert "went from hypothesis to committed because turn_is_over and has_whole_text and words_count" in sentence(
        traced, 9
    )


def test_an_interruption_shows_the_judgement_and_the_evidence(traced: Trace) -> None:
    explanation = explain(traced, 17)
    assert explanation.judgement is not None
    assert (explanation.judgement.verdict, explanation.judgement.reason) == (Verdict.ACCEPTED, "enough_words")
    assert explanation.evidence is not None
    assert explanation.evidence.source is InterruptionSource.SPEECH
    assert explanation.evidence.moment is Moment.GOING_ON
    assert explanation.evidence.words == 3
    details = "\n".join(details_of(traced, explanation))
    assert "The interruption was judged: accepted (enough_words)." in details
    assert "words = 3" in details
    assert "by InterruptionPolicy: sources = (button, client, provider, speech), min_words = 2" in details


def test_a_refused_fact_names_the_guard_and_the_values(traced: Trace) -> None:
    explanation = explain(traced, 21)
    assert explanation.fate is Fate.REFUSED
    (line,) = explanation.tried
    (guard,) = line.guards
    assert (guard.name, guard.wanted, guard.answer) == ("is_awaited_receipt", True, False)
    assert guard.looked_at == (("stopping", ()),)


def test_a_guard_tells_its_meaning_from_its_documentation(traced: Trace) -> None:
    guards = {guard.name: guard.meaning for line in explain(traced, 17).tried for guard in line.guards}
    assert guards["concerns_the_turn"].startswith("Of a recognition of this turn, newer than what is known")


def test_a_fact_that_no_state_of_the_chart_reacts_to_is_ignored() -> None:
    synthesis = Synthesis("response-1", Stamp(1, 1))
    recording = Recording(synthesis)
    synthesis.handle(TextEnded(at=0))
    synthesis.handle(OpenRequested(at=1_000_000))
    trace = recording.trace()
    assert explain(trace, 2).fate is Fate.IGNORED
    assert sentence(trace, 2) == ("Record 2, open_requested at +0.001 s, was ignored: nothing in silent reacts to it.")


def test_a_fact_that_only_other_states_react_to_says_which() -> None:
    synthesis = Synthesis("response-1", Stamp(1, 1))
    recording = Recording(synthesis)
    synthesis.handle(SynthesizerEnded(at=0, end_sample=0))
    synthesis.handle(TextEnded(at=0))
    assert sentence(recording.trace(), 2).endswith(
        "was ignored: nothing in ended reacts to it (silent, speaking would)."
    )


def test_a_timer_that_was_not_running_any_more_is_told_as_such() -> None:
    script = ScriptedConversation()
    recording = Recording(script.conversation)
    script.opens()
    (timer,) = script.running(TimerKind.CONNECT)
    script.connects()
    script.tell(TimerFired(at=script.now_ns, timer_id=timer.timer_id))
    explanation = explain(recording.trace(), 3)
    assert explanation.is_dead_timer
    assert "its timer was not running any more" in sentence(recording.trace(), 3)


def test_a_timer_that_was_running_is_told_by_its_kind() -> None:
    script = ScriptedConversation()
    recording = Recording(script.conversation)
    script.opens()
    script.wait(30_000)
    assert sentence(recording.trace(), 2).startswith(
        "Record 2, connect_timed_out at +30.000 s, was accepted: Connection went from opening to closed"
    )


def test_times_are_told_since_the_trace_began(traced: Trace) -> None:
    details = "\n".join(details_of(traced, explain(traced, 15)))
    assert "turn.committed_at = +0.800 s" in details
    assert "now = +1.400 s" in details


class PickyChart(ConversationChart):
    """An embedder's extension, with a guard that needs the very type of the fact."""

    def nothing_was_tried(self) -> bool:
        welcome: dict[type[Fact], bool] = {OpenRequested: True}
        return welcome[type(self.fact)]


def test_what_a_guard_of_an_embedder_looked_at_may_stay_untold() -> None:
    conversation = Conversation(definition=PickyChart)
    recording = Recording(conversation)
    conversation.handle(OpenRequested(at=0))
    explanation = explain(recording.trace(), 1, chart=conversation_chart("picky", PickyChart))
    assert explanation.fate is Fate.ACCEPTED
    assert explanation.tried[0].guards[0].looked_at == ()


class StrictPolicy(InterruptionPolicy):
    """An embedder's own."""


def test_a_policy_of_an_embedder_is_handed_over() -> None:
    policies = Policies(interruption=StrictPolicy())
    conversation = Conversation(policies=policies)
    recording = Recording(conversation)
    conversation.handle(OpenRequested(at=0))
    with pytest.raises(TraceError, match="StrictPolicy: hand it over"):
        explain(recording.trace(), 1)
    assert explain(recording.trace(), 1, policies=policies).fate is Fate.ACCEPTED


def test_asking_why_leaves_the_chart_where_it_was() -> None:
    script = ScriptedConversation().opened()
    before = script.conversation.snapshot()
    with script.conversation.considering(OpenRequested(at=99)) as (event, rules):
        assert event == "open_requested"
        assert rules.fact == OpenRequested(at=99)
    assert script.conversation.snapshot() == before
