"""What changed in the charts between a revision and now, in their own words."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from ...statecharts.chart import states_of, transitions_of
from ...statecharts.charts import CHARTS

_TIMEOUT_S = 60
_PARTS = ("__init__.py", "statecharts")
"""Of the package: all that the charts need."""

# Runs in the old package, which may have no registry of charts yet.
_DUMP = """
import dataclasses, json, sys
sys.path.insert(0, sys.argv[1])
from voicechart.statecharts.chart import states_of, transitions_of
try:
    from voicechart.statecharts.charts import CHARTS
    definitions = {name: chart.definition for name, chart in CHARTS.items()}
except ImportError:
    from voicechart.statecharts.conversation import ConversationChart
    definitions = {"conversation": ConversationChart}
json.dump({
    name: {
        "states": [dataclasses.asdict(state) for state in states_of(definition)],
        "transitions": [dataclasses.asdict(line) for line in transitions_of(definition)],
    }
    for name, definition in definitions.items()
}, sys.stdout)
"""


class DifferenceError(Exception):
    """A revision's charts could not be read. The text says why."""


Line = dict[str, object]
"""A state or a transition line, by the names of its fields."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a chart declares."""

    states: tuple[Line, ...]
    transitions: tuple[Line, ...]


def declared_now() -> dict[str, Declared]:
    """Every chart as it is."""
    return {
        name: Declared(
            states=tuple(_told(asdict(state)) for state in states_of(chart.definition)),
            transitions=tuple(_told(asdict(line)) for line in transitions_of(chart.definition)),
        )
        for name, chart in CHARTS.items()
    }


def declared_at(revision: str, checkout: Path) -> dict[str, Declared]:
    """Every chart as it was at a revision of the git checkout around `checkout`. Raises `DifferenceError`.

    The package of that revision is unpacked into a temporary folder and runs in a process of its own.
    """
    root = _git(checkout, "rev-parse", "--show-toplevel").decode().strip()
    commit = _git(Path(root), "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}").decode().strip()
    archive = _git(Path(root), "archive", "--format=zip", commit, *_PARTS)
    with tempfile.TemporaryDirectory(prefix="voicechart-") as folder:
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            files.extractall(Path(folder, "voicechart"))
        dumped = _run([sys.executable, "-P", "-c", _DUMP, folder], Path(folder), f"the charts of {revision}")
    charts = cast("dict[str, dict[str, list[Line]]]", json.loads(dumped))
    return {
        name: Declared(tuple(map(_told, of_it["states"])), tuple(map(_told, of_it["transitions"])))
        for name, of_it in charts.items()
    }


def differences(old: dict[str, Declared], new: dict[str, Declared]) -> tuple[str, ...]:
    """One line a difference: `+` was added, `-` was removed, `~` was changed; empty when there is none."""
    lines: list[str] = []
    for name in (*old, *(name for name in new if name not in old)):
        if name not in new or name not in old:
            lines.append(f"{'+' if name in new else '-'} chart {name}")
            continue
        lines += [f"{line[0]} {name}: {line[2:]}" for line in _between(old[name], new[name])]
    return tuple(lines)


def _between(old: Declared, new: Declared) -> list[str]:
    lines = [f"- state {_state(state)}" for state in old.states if state not in new.states]
    lines += [f"+ state {_state(state)}" for state in new.states if state not in old.states]
    removed = [line for line in old.transitions if line not in new.transitions]
    added = [line for line in new.transitions if line not in old.transitions]
    for line in removed:
        successor = next((other for other in added if _is_changed(line, other)), None)
        if successor is None:
            lines.append(f"- {_transition(line)}")
        else:
            added.remove(successor)
            lines.append(f"~ {_transition(line)}  became  {_transition(successor)}")
    lines += [f"+ {_transition(line)}" for line in added]
    kept = [line for line in old.transitions if line in new.transitions]
    reordered = [line for line in new.transitions if line in kept]
    lines += [
        f"~ {was['region']}: another order, now first {_transition(now)}"
        for was, now in zip(kept, reordered, strict=True)
        if was != now
    ][:1]
    return lines


def _is_changed(old: Line, new: Line) -> bool:
    """The same way, for some of the same events or with the same actions."""
    same_way = all(old[part] == new[part] for part in ("region", "source", "target"))
    shared = set(cast("list[str]", old["events"])) & set(cast("list[str]", new["events"]))
    return same_way and (bool(shared) or (old["actions"] == new["actions"] and bool(old["actions"])))


def _state(state: Line) -> str:
    inside = f" in {state['parent']}" if state["parent"] else ""
    return f"{state['state_id']}{inside}{', initial' if state['is_initial'] else ''}"


def _transition(line: Line) -> str:
    events, guards, actions = (", ".join(cast("list[str]", line[part])) for part in ("events", "guards", "actions"))
    target = f" -> {line['target']}" if line["target"] else ""
    return f"{line['source']}{target}: {events}{f' [{guards}]' if guards else ''}{f' / {actions}' if actions else ''}"


def _told(fields: dict[str, object]) -> Line:
    """As JSON has it, without what other states tell: a compound's children name their parent."""
    return {
        name: list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value
        for name, value in fields.items()
        if name != "children"
    }


def _git(folder: Path, *arguments: str) -> bytes:
    return _run(["git", *arguments], folder, f"git {' '.join(arguments)}")


def _run(command: list[str], folder: Path, what: str) -> bytes:
    try:
        ran = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DifferenceError(f"{what}: {error}") from error
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip().splitlines()
        raise DifferenceError(f"{what} failed: {said[-1] if said else 'it does not say why'}")
    return ran.stdout
