"""The declared chart for a page that shows it alive: its states, its transition lines, its picture."""

from __future__ import annotations

from importlib.resources import files

from ...statecharts.chart import ChartDefinition, states_of, transitions_of
from .folding import Json

PACKAGE = "voicechart.adapters.web"
PICTURE = "chart.svg"


def chart_json(definition: type[ChartDefinition]) -> Json:
    """States and lines. `row` is how records of a trace name a line. In the picture a leaf's group has the id
    `state_<id>`, and everything that belongs to a line has the class `row_<row>`.
    """
    return {
        "states": [
            {
                "id": state.state_id,
                "name": state.name,
                "region": state.region,
                "parent": state.parent,
                "is_leaf": not state.children,
                "is_initial": state.is_initial,
            }
            for state in states_of(definition)
        ],
        "transitions": [
            {
                "row": row,
                "region": line.region,
                "source": line.source,
                "events": list(line.events),
                "target": line.target,
                "guards": list(line.guards),
                "actions": list(line.actions),
            }
            for row, line in enumerate(transitions_of(definition))
        ],
    }


def chart_picture() -> bytes | None:
    """The SVG that is shipped; None when it is not there."""
    picture = files(PACKAGE).joinpath(PICTURE)
    return picture.read_bytes() if picture.is_file() else None
