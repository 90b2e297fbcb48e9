"""The chart that a page shows alive is the chart there is, and its picture can be lit."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from voicechart.adapters.diagrams import is_live_outdated
from voicechart.adapters.web.chart_view import chart_json, chart_picture
from voicechart.statecharts.conversation import ConversationChart


def picture() -> bytes:
    found = chart_picture()
    assert found is not None
    return found


def test_the_shipped_picture_shows_the_chart_as_it_is() -> None:
    assert not is_live_outdated(picture()), "draw it anew: python diagrams/render.py"


def test_every_leaf_and_every_line_that_leads_somewhere_can_be_lit() -> None:
    drawn = ET.fromstring(picture())
    groups = [group for group in drawn.iter() if group.tag.endswith("}g")]
    ids = {group.get("id", "") for group in groups}
    classes = {name for group in groups for name in group.get("class", "").split()}
    chart = chart_json(ConversationChart)
    leaves = [state["id"] for state in chart["states"] if state["is_leaf"]]
    assert {f"state_{leaf}" for leaf in leaves} <= ids
    leading = [line["row"] for line in chart["transitions"] if line["target"] is not None]
    assert {f"row_{row}" for row in leading} <= classes


def test_a_picture_holds_no_script_and_asks_nobody_for_anything() -> None:
    text = picture().decode()
    assert "<script" not in text
    assert "href" not in text.replace("xmlns:xlink", "")
