"""The two ways in which a running conversation is shown: a live picture on a terminal, lines everywhere else."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .moments import Moment
from .picture import Picture, regions, state_names

MAX_SPEECH_CHARS = 400
WHO_STYLES = {"user": "cyan", "model": "magenta", "voice": "green", "speaker": "green", "session": "dim"}


class View(Protocol):
    """Shows a conversation; used as a context manager, on one thread at a time."""

    def __enter__(self) -> object: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> object: ...
    def show(self, picture: Picture, moments: Sequence[Moment]) -> None:
        """Something changed. `moments` are new since the last call."""
        ...


class TimelineView:
    """A line a moment: seconds, the four regions, who, what."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began_at: int | None = None

    def __enter__(self) -> TimelineView:
        names = "  ".join(f"{region.name.lower():<10}" for region in regions())
        self._console.print(Text(f"{'seconds':>8}  {names}  {'who':<8}  what", "dim"), soft_wrap=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to take down."""

    def show(self, picture: Picture, moments: Sequence[Moment]) -> None:
        for moment in moments:
            if self._began_at is None:
                self._began_at = moment.at_ns
            self._console.print(timeline_line(moment, self._began_at), soft_wrap=True)


class LiveView:
    """The chart with its active states, the captions, and what is written beside what is heard."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began_at: int | None = None
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, picture: Picture, moments: Sequence[Moment]) -> None:
        if moments and self._began_at is None:
            self._began_at = moments[0].at_ns
        for moment in moments:
            # Above the picture, where it stays.
            self._live.console.print(timeline_line(moment, self._began_at or moment.at_ns))
        self._live.update(draw(picture), refresh=True)


def timeline_line(moment: Moment, began_at: int) -> Text:
    """One line of the timeline."""
    names = state_names()
    states = "  ".join(f"{names.get(leaf, leaf):<10}" for leaf in moment.leaves)
    line = Text(f"{(moment.at_ns - began_at) / 1e9:8.2f}  ")
    line.append(f"{states}  ", "dim")
    style = "bold red" if moment.is_marked else WHO_STYLES.get(moment.who, "")
    line.append(f"{moment.who:<8}  {moment.text}", style)
    return line


def draw(picture: Picture) -> Panel:
    """The whole picture."""
    heard, sounding, waiting = picture.speech()
    speech = Text()
    speech.append(f"{_end_of(heard)} " if heard else "", "bold green")
    speech.append(f"{sounding} " if sounding else "", "bold yellow")
    if picture.interrupted:
        speech.append("✂ interrupted ", "bold red")
    speech.append(waiting[:MAX_SPEECH_CHARS], "dim")
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column()
    rows.add_row("user", Text.assemble((picture.caption or "…", "cyan"), (f"  {picture.caption_state}", "dim")))
    rows.add_row("heard", speech)
    rows.add_row(
        "written", Text(f"{len(picture.generated)} characters  {_end_of(picture.generated, 100)}", "dim magenta")
    )
    return Panel(Group(_chart(picture), Text(), rows), title="voicechart", border_style="dim")


def _chart(picture: Picture) -> Table:
    chart = Table.grid(expand=True, padding=(0, 1))
    columns: list[Text] = []
    for region in regions():
        chart.add_column(ratio=1)
        column = Text.assemble((region.name, "bold"))
        for identity, name in region.states:
            active = identity in picture.leaves
            column.append(f"\n{'●' if active else ' '} {name}", "bold reverse" if active else "dim")
        columns.append(column)
    chart.add_row(*columns)
    return chart


def _end_of(text: str, max_chars: int = MAX_SPEECH_CHARS) -> str:
    return text if len(text) <= max_chars else f"…{text[-max_chars:]}"
