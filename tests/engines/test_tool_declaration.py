"""A tool is a typed function; what no provider would take is refused where it is written."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from voicechart.engines import SideEffects, Tool, ToolError, ToolRefused, tool
from voicechart.engines.tool import MAX_OUTPUT_CHARS, as_text, cleaned


class Lamp(BaseModel):
    number: int


async def switch(lamp: Lamp) -> str:
    """Switch a lamp."""
    return f"lamp {lamp.number} is on"


async def undocumented(lamp: Lamp) -> str:
    return str(lamp)


async def two(lamp: Lamp, other: Lamp) -> str:
    """Take too much."""
    return f"{lamp} {other}"


async def plain(lamp: int) -> str:
    """Take a number."""
    return str(lamp)


def blocking(lamp: Lamp) -> str:
    """Block."""
    return str(lamp)


def test_name_description_and_schema_come_from_the_function() -> None:
    declared = tool(switch)
    definition = declared.definition()
    assert (definition.name, definition.description) == ("switch", "Switch a lamp.")
    schema = json.loads(definition.parameters_schema)
    assert schema["properties"]["number"]["type"] == "integer"
    assert schema["required"] == ["number"]
    assert declared.side_effects is SideEffects.YES


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (undocumented, "docstring"),
        (two, "one parameter"),
        (plain, "pydantic model"),
        (blocking, "async"),
    ],
)
def test_a_function_that_is_no_tool_is_refused_with_what_to_change(function: object, reason: str) -> None:
    with pytest.raises(ToolRefused, match=reason):
        tool(function)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", ["", "my tool", "a.b", "x" * 65, "wetter_ü"])
def test_a_name_that_some_provider_refuses_is_refused(name: str) -> None:
    with pytest.raises(ToolRefused, match="name"):
        tool(switch, name=name) if name else Tool(name, "", Lamp, switch)


def test_the_longest_name_is_taken() -> None:
    assert tool(switch, name="x" * 64).name == "x" * 64


def test_a_deadline_of_nothing_is_refused() -> None:
    with pytest.raises(ToolRefused, match="timeout_ms"):
        tool(switch, timeout_ms=0)


@pytest.mark.parametrize("side_effects", [SideEffects.NONE, SideEffects.IDEMPOTENT])
def test_only_what_may_run_twice_in_the_background_can_be_resumable(side_effects: SideEffects) -> None:
    assert tool(switch, background=True, resumable=True, side_effects=side_effects).resumable
    with pytest.raises(ToolRefused, match="resumable"):
        tool(switch, background=True, resumable=True)
    with pytest.raises(ToolRefused, match="resumable"):
        tool(switch, resumable=True, side_effects=side_effects)


@dataclass
class Reading:
    celsius: float


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("as it is", "as it is"),
        (Lamp(number=3), '{"number":3}'),
        ({"grad": 3.5, "ort": "Köln"}, '{"grad":3.5,"ort":"Köln"}'),
        (Reading(3.5), '{"celsius":3.5}'),
        (None, "null"),
        (float("nan"), "null"),
        ("bell\x07 and \x1b[31mred\nline", "bell and [31mred\nline"),
    ],
)
def test_a_result_is_shown_as_text_or_as_json(result: object, said: str) -> None:
    assert as_text(result) == said


def test_a_result_without_a_form_is_a_failure_that_ran() -> None:
    with pytest.raises(ToolError, match="cannot be written down"):
        as_text(object())


def test_a_result_is_cut_at_its_bound_and_says_so() -> None:
    assert as_text("x" * MAX_OUTPUT_CHARS) == "x" * MAX_OUTPUT_CHARS
    cut = as_text("x" * (MAX_OUTPUT_CHARS + 1))
    assert len(cut) == MAX_OUTPUT_CHARS
    assert cut.endswith("(cut)")
    assert len(cleaned("y" * 5_000)) < 1_100
