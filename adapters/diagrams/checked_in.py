"""The set of drawings that is checked in: what belongs to it, drawing it, and telling whether it is still true."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...statecharts.chart import states_of
from ...statecharts.charts import CHARTS, known_chart
from .barge_in import barge_in_rows
from .dot import dot_text
from .layout import digest_of, lay_out, source_of
from .mermaid import mermaid_text
from .model import Picture, picture_of


@dataclass(frozen=True, slots=True)
class Drawing:
    """One drawing of the set, as SVG and as Mermaid text."""

    name: str
    chart: str
    region: str | None = None
    overview: bool = False
    identified: bool = False

    @property
    def picture(self) -> Picture:
        """What it shows, as the chart is now."""
        definition = known_chart(self.chart).definition
        return picture_of(self.chart, definition, barge_in_rows(definition), region=self.region)

    @property
    def dot(self) -> str:
        """What it is drawn from."""
        return dot_text(self.picture, overview=self.overview, identified=self.identified)

    @property
    def mermaid(self) -> str:
        """The same as Mermaid text."""
        return mermaid_text(self.picture, overview=self.overview)


def drawings() -> tuple[Drawing, ...]:
    """An overview and the whole of each chart with regions, each of its regions, and every smaller chart."""
    found: list[Drawing] = []
    for name, chart in CHARTS.items():
        regions = list(dict.fromkeys(state.region for state in states_of(chart.definition) if not state.is_parallel))
        if len(regions) > 1:
            found += [Drawing(name, name, overview=True), Drawing(f"{name}-full", name)]
            found += [Drawing(region, name, region) for region in regions]
        else:
            found.append(Drawing(name, name))
    return tuple(found)


def draw_all(folder: Path) -> tuple[Path, ...]:
    """Draw the set into a folder. Everything is drawn before anything is written. Raises `LayoutError`, `OSError`."""
    files: dict[Path, bytes] = {}
    for drawing in drawings():
        files[folder / f"{drawing.name}.svg"] = lay_out(drawing.dot, "svg", drawing.picture.title, reproducible=True)
        files[folder / f"{drawing.name}.mmd"] = drawing.mermaid.encode("utf-8")
    for path, content in files.items():
        path.write_bytes(content)
    return tuple(files)


LIVE = Drawing("chart", "conversation", overview=True, identified=True)
"""What the page of the web interface shows alive; it is shipped with the package."""


def draw_live(path: Path) -> Path:
    """Draw it into that file. Raises `LayoutError`, `OSError`."""
    path.write_bytes(lay_out(LIVE.dot, "svg", LIVE.picture.title, reproducible=True))
    return path


def is_live_outdated(svg: bytes) -> bool:
    """Whether this file shows another chart than the one there is."""
    return source_of(svg.decode("utf-8", "replace")) != digest_of(LIVE.dot)


def outdated(folder: Path) -> tuple[str, ...]:
    """What in a folder is not what the charts are now, one line each; empty when all is well. Lays nothing out."""
    complaints: list[str] = []
    for drawing in drawings():
        svg, mermaid = folder / f"{drawing.name}.svg", folder / f"{drawing.name}.mmd"
        if not svg.is_file() or source_of(svg.read_text(encoding="utf-8")) != digest_of(drawing.dot):
            complaints.append(f"{svg} {'shows another chart' if svg.is_file() else 'is missing'}")
        if not mermaid.is_file() or mermaid.read_text(encoding="utf-8") != drawing.mermaid:
            complaints.append(f"{mermaid} {'shows another chart' if mermaid.is_file() else 'is missing'}")
    wanted = {drawing.name for drawing in drawings()}
    drawn = sorted(path for pattern in ("*.svg", "*.mmd") for path in folder.glob(pattern))
    complaints += [f"{path} belongs to no chart" for path in drawn if path.stem not in wanted]
    return tuple(complaints)
