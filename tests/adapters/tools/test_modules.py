"""Tools that a configuration names by where they stand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from voicechart.adapters.tools import ModuleRefused, load_modules

SOURCE = '''
from pydantic import BaseModel
from voicechart.engines import tool

class Lamp(BaseModel):
    number: int

async def switch(lamp: Lamp) -> str:
    """Switch a lamp."""
    return "on"

SWITCH = tool(switch)
TOOLS = [SWITCH, tool(switch, name="again")]
NUMBER = 3
MIXED = [SWITCH, 3]
'''


@pytest.fixture(autouse=True)
def lamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lamps_for_a_test.py").write_text(SOURCE)
    (tmp_path / "broken_for_a_test.py").write_text("raise OSError('no lamps')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


def test_one_tool_and_a_list_of_tools_are_found_in_order() -> None:
    tools = load_modules(["lamps_for_a_test:TOOLS", "lamps_for_a_test:SWITCH"])
    assert [tool.name for tool in tools] == ["switch", "again", "switch"]


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("lamps_for_a_test", "write package.module:NAME"),
        (":TOOLS", "write package.module:NAME"),
        ("no_such_module_here:TOOLS", "importing it failed"),
        ("broken_for_a_test:TOOLS", "OSError: no lamps"),
        ("lamps_for_a_test:MISSING", "no list of tools"),
        ("lamps_for_a_test:NUMBER", "no list of tools"),
        ("lamps_for_a_test:MIXED", "no voicechart.engines.Tool"),
    ],
)
def test_what_is_not_there_is_refused_with_what_to_change(place: str, reason: str) -> None:
    with pytest.raises(ModuleRefused, match=reason):
        load_modules([place])
