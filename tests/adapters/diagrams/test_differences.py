from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import voicechart
from voicechart.adapters.diagrams import DifferenceError, declared_at, declared_now, differences

PACKAGE = Path(voicechart.__file__).parent


@pytest.fixture
def commit(tmp_path: Path) -> Callable[..., Path]:
    """Commits the charts to a checkout of their own, after replacing text in their files; gives the checkout."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    shutil.copy(PACKAGE / "__init__.py", tmp_path)
    shutil.copytree(PACKAGE / "statecharts", tmp_path / "statecharts", ignore=shutil.ignore_patterns("__pycache__"))

    def change(replaced: dict[str, tuple[str, str]] | None = None) -> Path:
        for name, (old, new) in (replaced or {}).items():
            path = tmp_path / "statecharts" / name
            text = path.read_text(encoding="utf-8")
            assert old in text
            path.write_text(text.replace(old, new, 1), encoding="utf-8")
        identity = ["-c", "user.name=a test", "-c", "user.email=test@localhost"]
        subprocess.run(["git", *identity, "add", "."], cwd=tmp_path, check=True)
        subprocess.run(["git", *identity, "commit", "--quiet", "-m", "charts"], cwd=tmp_path, check=True)
        return tmp_path

    return change


def test_the_charts_of_a_revision_that_changed_nothing_are_the_same(commit: Callable[..., Path]) -> None:
    assert declared_at("HEAD", commit()) == declared_now()
    assert differences(declared_now(), declared_now()) == ()


def test_what_was_added_removed_and_changed_is_told_apart(commit: Callable[..., Path]) -> None:
    checkout = commit(
        {
            "tool_call.py": ('unknown = State("unknown")', 'unknown = State("unknown")\n        lost = State("lost")'),
            "synthesis.py": ('silent.to(None, event="text_ended", on="finish_text")\n', "\n"),
            "background_task.py": ('event="task_progressed", cond="is_further"', 'event="task_progressed"'),
        }
    )
    assert differences(declared_now(), declared_at("HEAD", checkout)) == (
        "- synthesis: silent: text_ended / finish_text",
        "+ tool_call: state lost in tool_call",
        "~ background_task: running: task_progressed [is_further] / report_progress  became  "
        "running: task_progressed / report_progress",
    )


def test_an_order_that_changed_is_told_because_lines_are_tried_in_it() -> None:
    old = declared_now()
    chart = old["synthesis"]
    swapped = type(chart)(chart.states, (chart.transitions[1], chart.transitions[0], *chart.transitions[2:]))
    (line,) = differences(old, {**old, "synthesis": swapped})
    assert line.startswith("~ synthesis: synthesis: another order, now first silent: text_ended")


def test_a_chart_that_came_or_went_is_one_line() -> None:
    now = declared_now()
    fewer = {name: chart for name, chart in now.items() if name != "recognition"}
    assert differences(fewer, now) == ("+ chart recognition",)
    assert differences(now, fewer) == ("- chart recognition",)


def test_an_unknown_revision_is_refused(commit: Callable[..., Path]) -> None:
    with pytest.raises(DifferenceError, match=r"nonsense\^\{commit\} failed"):
        declared_at("nonsense", commit())


@pytest.mark.parametrize("revision", ["--output=x", "-h", ""])
def test_a_revision_is_never_taken_for_an_option(commit: Callable[..., Path], revision: str) -> None:
    with pytest.raises(DifferenceError, match="failed"):
        declared_at(revision, commit())


def test_outside_of_a_checkout_it_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(DifferenceError, match="not a git repository"):
        declared_at("HEAD", tmp_path)


def test_a_revision_whose_charts_do_not_import_is_told(commit: Callable[..., Path]) -> None:
    checkout = commit({"chart.py": ("from __future__", "import nothing_of_that_name\nfrom __future__")})
    with pytest.raises(DifferenceError, match=r"the charts of HEAD failed: .*"):
        declared_at("HEAD", checkout)
