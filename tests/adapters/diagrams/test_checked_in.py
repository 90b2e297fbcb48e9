from __future__ import annotations

from pathlib import Path

import pytest

from voicechart.adapters.diagrams import draw_all, drawings, outdated

CHECKED_IN = Path(__file__).parents[3] / "diagrams"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("drawn")
    return {path.name: path.read_bytes() for path in draw_all(folder)}


@pytest.fixture
def folder(tmp_path: Path, drawn: dict[str, bytes]) -> Path:
    """A folder with the whole set, to be spoilt."""
    for name, content in drawn.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_the_checked_in_diagrams_show_the_charts_as_they_are() -> None:
    assert not outdated(CHECKED_IN), "draw them anew: python diagrams/render.py"


def test_the_set_has_an_overview_the_whole_each_region_and_the_smaller_charts() -> None:
    assert [drawing.name for drawing in drawings()] == [
        "conversation",
        "conversation-full",
        "connection",
        "input_turn",
        "generation",
        "playback",
        "recognition",
        "synthesis",
        "tool_call",
        "background_task",
    ]


def test_each_drawing_is_there_as_svg_and_as_mermaid_text(drawn: dict[str, bytes]) -> None:
    assert set(drawn) == {f"{drawing.name}.{suffix}" for drawing in drawings() for suffix in ("svg", "mmd")}


def test_the_overview_is_narrow_enough_for_a_page_at_its_full_size(drawn: dict[str, bytes]) -> None:
    width_pt = float(drawn["conversation.svg"].split(b'width="')[1].split(b"pt")[0])
    assert width_pt * 96 / 72 <= 1_000


def test_a_fresh_set_is_up_to_date(folder: Path) -> None:
    assert outdated(folder) == ()


def test_a_drawing_of_another_chart_is_named(folder: Path) -> None:
    (folder / "playback.svg").write_bytes((folder / "connection.svg").read_bytes())
    (folder / "tool_call.mmd").write_text("flowchart TB\n", encoding="utf-8")
    assert outdated(folder) == (
        f"{folder / 'playback.svg'} shows another chart",
        f"{folder / 'tool_call.mmd'} shows another chart",
    )


def test_another_layout_of_the_same_chart_is_still_true(folder: Path) -> None:
    svg = (folder / "playback.svg").read_text(encoding="utf-8")
    (folder / "playback.svg").write_text(svg.replace("translate(", "translate(1,0) translate("), encoding="utf-8")
    assert outdated(folder) == ()


def test_a_drawing_that_is_missing_or_of_no_chart_is_named(folder: Path) -> None:
    (folder / "playback.svg").rename(folder / "toaster.svg")
    assert outdated(folder) == (
        f"{folder / 'playback.svg'} is missing",
        f"{folder / 'toaster.svg'} belongs to no chart",
    )
