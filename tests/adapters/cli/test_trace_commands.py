from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from voicechart.adapters.cli import app
from voicechart.adapters.tracing import TraceLimits, TraceRecorder
from voicechart.statecharts import Conversation
from voicechart.statecharts.facts import ButtonPressed


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["trace", *map(str, arguments)], env={"COLUMNS": "100"})


@pytest.fixture
def trace(
    tmp_path: Path,
    make_conversation: Callable[[], Conversation],
    drive_to_an_interruption: Callable[[Conversation], None],
) -> Path:
    """A trace of the interrupted conversation."""
    conversation = make_conversation()
    recorder = TraceRecorder(conversation, tmp_path / "trace.jsonl")
    recorder.start()
    drive_to_an_interruption(conversation)
    recorder.stop()
    return tmp_path / "trace.jsonl"


def changed(trace: Path, old: str, new: str) -> Path:
    """A copy of the trace in which a text was replaced."""
    text = trace.read_text(encoding="utf-8")
    assert old in text
    copy = trace.with_name("changed.jsonl")
    copy.write_text(text.replace(old, new), encoding="utf-8")
    return copy


# -- show ----------------------------------------------------------------------------------------------------------


def test_show_lists_every_record_with_where_it_led(trace: Path) -> None:
    shown = run("show", trace)
    assert shown.exit_code == 0
    heading, *lines = shown.stdout.splitlines()
    assert heading.startswith("conversation ")
    assert heading.endswith("22 records, 0 gaps, texts redacted")
    assert len(lines) == 22
    assert "transcript_updated       streaming → cancelling; playing → stopped" in lines[16]
    assert "StopPlayback, CancelGeneration" in lines[16]
    assert "unused" in lines[20]


def test_show_can_be_narrowed_to_a_region_and_an_event(trace: Path) -> None:
    by_region = run("show", trace, "--region", "connection").stdout.splitlines()[1:]
    assert [line.split()[0] for line in by_region] == ["1", "2", "17"]
    by_event = run("show", trace, "--event", "speech_started").stdout.splitlines()[1:]
    assert [line.split()[0] for line in by_event] == ["3", "15"]


def test_show_as_json_gives_the_records_as_they_were_recorded(trace: Path) -> None:
    shown = run("show", trace, "--json").stdout.splitlines()
    recorded = trace.read_text(encoding="utf-8").splitlines()[1:]
    assert [json.loads(line) for line in shown] == [json.loads(line) for line in recorded]


def test_a_region_that_is_not_there_is_refused(trace: Path) -> None:
    refused = run("show", trace, "--region", "kitchen")
    assert refused.exit_code == 2
    assert "has no region 'kitchen': choose one of connection, input_turn, generation, playback" in refused.stderr


def test_a_line_that_was_cut_off_is_left_out_and_said_to_be(trace: Path) -> None:
    trace.write_text(trace.read_text(encoding="utf-8")[:-50], encoding="utf-8")
    shown = run("show", trace)
    assert shown.exit_code == 0
    assert len(shown.stdout.splitlines()) == 22
    assert "was cut off and is left out" in shown.stderr


def test_show_says_where_records_are_missing(tmp_path: Path) -> None:
    conversation = Conversation()
    recorder = TraceRecorder(conversation, tmp_path / "gap.jsonl", limits=TraceLimits(max_queued_steps=1))
    recorder.start()
    for at in range(3):
        conversation.handle(ButtonPressed(at=at))
    recorder.flush()
    conversation.handle(ButtonPressed(at=3))
    recorder.stop()
    shown = run("show", tmp_path / "gap.jsonl").stdout.splitlines()
    assert [line.split()[0] for line in shown[1:]] == ["1", "…", "4"]
    assert "2 records are missing" in shown[2]
    replayed = run("replay", tmp_path / "gap.jsonl")
    assert replayed.exit_code == 0
    assert "1 gap" in replayed.stdout


# -- timeline ------------------------------------------------------------------------------------------------------


def test_timeline_draws_a_lane_a_region_and_marks_the_interruption(trace: Path) -> None:
    drawn = run("timeline", trace)
    assert drawn.exit_code == 0
    lines = drawn.stdout.splitlines()
    assert [line.split("▏")[0].strip() for line in lines[1:5]] == ["Connection", "Input turn", "Generation", "Playback"]
    assert lines[5].startswith("facts")
    assert lines[5].count("┃") == 1
    assert all(len(line) <= 100 for line in lines)
    assert "interrupted by speech" in drawn.stdout


def test_timeline_shows_a_part_of_a_trace(trace: Path) -> None:
    drawn = run("timeline", trace, "--from", "1.55", "--to", "1.65")
    assert drawn.exit_code == 0
    assert "interrupted by speech" in drawn.stdout
    assert "connection_ready" not in drawn.stdout


def test_timeline_of_a_part_without_records_is_refused(trace: Path) -> None:
    refused = run("timeline", trace, "--from", "60")
    assert refused.exit_code == 2
    assert "holds no record from 60 s" in refused.stderr


def test_timeline_is_written_as_one_self_contained_file(trace: Path, tmp_path: Path) -> None:
    for name in ("timeline.svg", "timeline.html"):
        assert run("timeline", trace, "-o", tmp_path / name).exit_code == 0
    svg = ET.fromstring((tmp_path / "timeline.svg").read_text(encoding="utf-8"))
    words = {element.text for element in svg.iter() if element.text}
    assert {"Connection", "Input turn", "Generation", "Playback", "17: interruption"} <= words
    page = (tmp_path / "timeline.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "src=" not in page
    assert "href=" not in page


def test_timeline_knows_no_other_kind_of_file(trace: Path, tmp_path: Path) -> None:
    refused = run("timeline", trace, "-o", tmp_path / "timeline.pdf")
    assert refused.exit_code == 2
    assert "is written as .svg or .html" in refused.stderr
    assert not (tmp_path / "timeline.pdf").exists()


# -- replay --------------------------------------------------------------------------------------------------------


def test_replay_of_what_was_recorded_finds_no_divergence(trace: Path) -> None:
    replayed = run("replay", trace)
    assert replayed.exit_code == 0
    assert replayed.stdout.startswith("No divergence: 22 facts gave the same")


def test_replay_names_a_changed_action_with_both_configurations(trace: Path) -> None:
    replayed = run("replay", changed(trace, '"before_epoch":2', '"before_epoch":3'))
    assert replayed.exit_code == 1
    lines = [line.strip() for line in replayed.stdout.splitlines()]
    assert lines[0] == "Divergence at record 17, transcript_updated at +1.600 s: actions[0].before_epoch"
    assert lines[1:4] == [
        "before:         ready | hypothesis | streaming | playing",
        "recorded after: ready | hypothesis | cancelling | stopped",
        "replayed after: ready | hypothesis | cancelling | stopped",
    ]
    assert lines[4:] == ["recorded: 3", "replayed: 2"]


def test_replay_names_a_fact_that_the_chart_does_not_take_any_more(trace: Path) -> None:
    replayed = run("replay", changed(trace, '"type":"AudioStarted"', '"type":"AudioEnded","end_sample":0'))
    assert replayed.exit_code == 2
    assert "record 11, fact: AudioEnded has no 'channels'" in replayed.stderr


def test_replay_as_json_says_the_same(trace: Path) -> None:
    assert json.loads(run("replay", trace, "--json").stdout)["ok"] is True
    broken = run("replay", changed(trace, '"before_epoch":2', '"before_epoch":3'), "--json")
    assert broken.exit_code == 1
    told = json.loads(broken.stdout)
    assert told["ok"] is False
    assert told["divergence"]["record"] == 17
    assert told["divergence"]["where"] == "[0].before_epoch"


def test_replay_under_policies_that_are_handed_over_shows_what_they_change(trace: Path) -> None:
    replayed = run("replay", trace, "--policies", "voicechart.statecharts:Policies")
    assert replayed.exit_code == 1
    assert "Divergence at record 15" in replayed.stdout


@pytest.mark.parametrize("place", ["nowhere:POLICIES", "json:nothing", "json", "json:JSONDecoder"])
def test_policies_that_are_none_are_refused(trace: Path, place: str) -> None:
    refused = run("replay", trace, "--policies", place)
    assert refused.exit_code == 2
    assert f"--policies {place}" in refused.stderr


def test_a_trace_of_another_version_is_shown_and_not_replayed(trace: Path) -> None:
    fingerprint = json.loads(trace.read_text(encoding="utf-8").splitlines()[0])["fingerprint"]
    older = changed(trace, fingerprint, "000000000000")
    for command in (("replay", older), ("explain", older, 3)):
        refused = run(*command)
        assert refused.exit_code == 2
        assert len(refused.stderr.splitlines()) == 1
        assert "made by version 000000000000" in refused.stderr
    assert run("show", older).exit_code == 0
    assert run("timeline", older).exit_code == 0
    assert run("diff", older, trace).exit_code == 0


# -- diff ----------------------------------------------------------------------------------------------------------


def test_diff_of_two_runs_of_one_scenario_finds_nothing(
    trace: Path,
    tmp_path: Path,
    make_conversation: Callable[[], Conversation],
    drive_to_an_interruption: Callable[[Conversation], None],
) -> None:
    conversation = Conversation("bedroom", policies=make_conversation().policies)
    recorder = TraceRecorder(conversation, tmp_path / "other.jsonl")
    recorder.start()
    drive_to_an_interruption(conversation)
    recorder.stop()
    same = run("diff", trace, tmp_path / "other.jsonl")
    assert same.exit_code == 0
    assert same.stdout == "No difference in 22 records.\n"
    exact = run("diff", trace, tmp_path / "other.jsonl", "--exact", "--json")
    assert exact.exit_code == 1
    assert json.loads(exact.stdout)["difference"]["left_record"] == 1


def test_diff_names_the_first_record_that_is_not_the_same(trace: Path) -> None:
    differs = run("diff", trace, changed(trace, '"played_samples":8000', '"played_samples":9000'))
    assert differs.exit_code == 1
    assert differs.stdout.startswith("The first difference is at record 14, playback_progressed: fact.played_samples")


def test_diff_says_which_trace_goes_on(trace: Path) -> None:
    lines = trace.read_text(encoding="utf-8").splitlines(keepends=True)
    shorter = trace.with_name("shorter.jsonl")
    shorter.write_text("".join(lines[:-3]), encoding="utf-8")
    differs = run("diff", trace, shorter)
    assert differs.exit_code == 1
    assert "record 20" in differs.stdout
    assert f"{shorter}: it is over" in differs.stdout


# -- explain -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (
            17,
            "Record 17, transcript_updated at +1.600 s, was accepted: Connection stayed in ready because "
            "interruption_is_accepted; Input turn went from hypothesis to hypothesis because concerns_the_turn; the "
            "interruption policy answered accepted (enough_words); that decided interrupted, by which Generation left "
            "running for cancelling and Playback left playing for stopped.",
        ),
        (
            7,
            "Record 7, turn_ended at +0.600 s, was accepted and changed nothing: Input turn stayed in hypothesis "
            "because not is_from_the_authority.",
        ),
        (
            21,
            "Record 21, playback_drained at +2.000 s, was refused: Playback in stopped needs is_awaited_receipt, but "
            "is_awaited_receipt did not hold (stopping = ()).",
        ),
    ],
)
def test_explain_says_in_one_sentence_why(trace: Path, number: int, sentence: str) -> None:
    explained = run("explain", trace, number, "--brief")
    assert explained.exit_code == 0
    assert explained.stdout.strip() == sentence


def test_explain_names_the_guards_and_the_values_they_looked_at(trace: Path) -> None:
    told = run("explain", trace, 15).stdout
    assert "interruption_is_accepted? no" in told
    assert "continues_committed_turn? no" in told
    assert "response.heard = True" in told
    assert "policies.turn.continuation_window_ms = 1500" in told
    assert "The interruption was judged: undecided (too_few_words)." in told
    assert "moment = started" in told


def test_a_record_that_is_not_there_is_refused(trace: Path) -> None:
    refused = run("explain", trace, 99)
    assert refused.exit_code == 2
    assert refused.stderr.strip().endswith("has no record 99: it holds 1 to 22")


# -- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("show",), ("timeline",), ("replay",), ("explain", "1")])
@pytest.mark.parametrize("content", [None, "", "no trace\n", "{}\n"], ids=["missing", "empty", "text", "object"])
def test_what_is_no_trace_is_refused_in_one_line(tmp_path: Path, command: tuple[str, ...], content: str | None) -> None:
    path = tmp_path / "none.jsonl"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    name, *rest = command
    refused = run(name, path, *rest)
    assert refused.exit_code == 2
    assert refused.stdout == ""
    assert len(refused.stderr.splitlines()) == 1
    assert str(path) in refused.stderr
