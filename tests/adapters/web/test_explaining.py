"""Whoever clicks on a macrostep is told why it went as it did."""

from __future__ import annotations

import pytest

from voicechart.adapters.testing.web_site import site
from voicechart.adapters.web.options import WebOptions

pytestmark = pytest.mark.anyio
PATH = "/api/trace/explanation"


async def test_a_macrostep_is_explained_by_the_lines_that_were_tried_and_what_their_guards_saw() -> None:
    async with site() as here:
        await here.whole_chat("a secret message")
        explained = (await here.client.get(PATH, params={"number": 3})).json()
        first = (await here.client.get(PATH, params={"number": 1})).json()
    assert explained["number"] == 3
    assert explained["fate"] == "accepted"
    assert explained["sentence"].startswith("Record 3, text_submitted at +")
    assert "Input turn went from idle to committed" in explained["sentence"]
    line = next(line for line in explained["tried"] if line["region"] == "input_turn")
    assert (line["leaf"], line["target"], line["enabled"]) == ("input_idle", "committed", True)
    assert "secret" not in str(explained)
    (opening,) = first["tried"]
    (guard,) = opening["guards"]
    assert (guard["name"], guard["held"], guard["looked_at"]) == (
        "nothing_was_tried",
        True,
        [["connect_attempts", "0"]],
    )


@pytest.mark.parametrize(
    ("query", "status"),
    [({"number": "0"}, 404), ({"number": "999"}, 404), ({"number": "x"}, 422), ({}, 422), ({"number": "-1"}, 422)],
)
async def test_what_is_no_macrostep_that_is_kept_is_refused(query: dict[str, str], status: int) -> None:
    async with site() as here:
        answer = await here.client.get(PATH, params=query)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


async def test_of_another_conversation_nothing_is_told() -> None:
    async with site() as here:
        answer = await here.client.get(PATH, params={"number": 1, "conversation_id": "nobody"})
    assert answer.status_code == 404


async def test_nothing_is_explained_where_the_chart_is_not_shown() -> None:
    async with site(options=WebOptions(port=0, show_chart=False)) as here:
        assert (await here.client.get(PATH, params={"number": 1})).status_code == 403
