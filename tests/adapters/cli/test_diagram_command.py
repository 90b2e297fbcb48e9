from __future__ import annotations

import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import voicechart
from voicechart.adapters.cli import app
from voicechart.adapters.tracing import TraceRecorder
from voicechart.statecharts import Conversation

DIAGRAMS = Path(__file__).parents[3] / "diagrams"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["diagram", *map(str, arguments)])


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


def test_without_a_wish_the_conversation_is_drawn_as_mermaid_text() -> None:
    drawn = run()
    assert drawn.exit_code == 0
    assert drawn.stdout.splitlines()[1] == "flowchart TB"
    assert "capabilities_suffice" in drawn.stdout


@pytest.mark.parametrize("chart", ["conversation", "recognition", "synthesis", "tool_call", "background_task"])
def test_every_chart_can_be_drawn(chart: str) -> None:
    drawn = run(chart, "--format", "dot")
    assert drawn.exit_code == 0
    assert drawn.stdout.startswith(f'digraph "{chart}"')


def test_the_name_of_the_file_says_the_format(tmp_path: Path) -> None:
    for name, beginning in (("a.svg", b"<?xml"), ("a.png", b"\x89PNG"), ("a.dot", b"digraph"), ("a.mmd", b"%%{init")):
        assert run("tool_call", "-o", tmp_path / name).exit_code == 0
        assert (tmp_path / name).read_bytes().startswith(beginning)


def test_the_transaction_is_highlighted_on_demand() -> None:
    assert "barge-in 2 of 3" in run("--barge-in", "--overview").stdout
    assert "barge-in" not in run("--overview").stdout


def test_one_region_is_drawn_alone() -> None:
    drawn = run("--region", "playback", "--format", "dot").stdout
    assert "cluster_playback" in drawn
    assert "cluster_generation" not in drawn


def test_an_active_configuration_is_coloured(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    assert run("--state", "ready", "--state", "playback=playing", "-o", path).exit_code == 0
    assert path.read_text(encoding="utf-8").count('fill="#c3f0ca"') == 3  # two states and the legend
    ET.parse(path)


def test_the_path_of_a_trace_is_drawn_up_to_a_record(trace: Path) -> None:
    at_the_start = run("--trace", trace, "--at", "2", "--format", "dot").stdout
    assert "taken last" in at_the_start
    assert "taken 2 ×" not in at_the_start
    whole = run("--trace", trace, "--format", "dot").stdout
    assert "taken 2 ×" in whole


def test_check_says_that_the_checked_in_diagrams_are_true() -> None:
    assert run("--check", "--folder", DIAGRAMS).exit_code == 0


def test_check_fails_and_names_a_diagram_that_is_not(tmp_path: Path) -> None:
    shutil.copytree(DIAGRAMS, tmp_path / "diagrams")
    (tmp_path / "diagrams" / "playback.mmd").write_text("flowchart TB\n", encoding="utf-8")
    checked = run("--check", "--folder", tmp_path / "diagrams")
    assert checked.exit_code == 1
    assert checked.stdout.splitlines() == [f"{tmp_path / 'diagrams' / 'playback.mmd'} shows another chart"]
    assert "draw them anew" in checked.stderr


def test_diff_tells_what_changed_since_a_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(voicechart.__file__).parent
    shutil.copy(package / "__init__.py", tmp_path)
    shutil.copytree(package / "statecharts", tmp_path / "statecharts", ignore=shutil.ignore_patterns("__pycache__"))
    synthesis = tmp_path / "statecharts" / "synthesis.py"
    text = synthesis.read_text(encoding="utf-8")
    synthesis.write_text(text.replace('silent.to(None, event="text_ended", on="finish_text")', ""), encoding="utf-8")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a test", "-c", "user.email=test@localhost"]
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "charts"]):
        subprocess.run([*git, *arguments], check=True)
    monkeypatch.chdir(tmp_path)
    told = run("--diff", "HEAD")
    assert told.exit_code == 0
    assert told.stdout == "+ synthesis: silent: text_ended / finish_text\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["toaster"], "there is no chart 'toaster': choose one of conversation, recognition"),
        (["--region", "kitchen"], "conversation has no region 'kitchen'"),
        (["--state", "idle"], "more than one region has a state 'idle'"),
        (["--at", "3"], "--at needs --trace"),
        (["--trace", "none.jsonl"], "none.jsonl cannot be read"),
        (["--diff", "no-such-revision"], "no-such-revision"),
        (["-o", "no/such/folder/a.svg"], "No such file or directory"),
    ],
    ids=str,
)
def test_bad_input_is_refused_in_one_line(arguments: list[str], complaint: str) -> None:
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert refused.stdout == ""
    assert len(refused.stderr.splitlines()) == 1
    assert complaint in refused.stderr


def test_a_trace_of_another_chart_is_refused(trace: Path) -> None:
    refused = run("synthesis", "--trace", trace)
    assert refused.exit_code == 2
    assert "is of the chart conversation: draw that one" in refused.stderr


def test_a_place_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a.svg").mkdir()
    refused = run("tool_call", "-o", tmp_path / "a.svg")
    assert refused.exit_code == 2
    assert [found.name for found in tmp_path.iterdir()] == ["a.svg"]


def test_a_drawing_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    path.write_text("what was there", encoding="utf-8")
    assert run("--state", "nowhere", "-o", path).exit_code == 2
    assert path.read_text(encoding="utf-8") == "what was there"
    assert [found.name for found in tmp_path.iterdir()] == ["a.svg"]
