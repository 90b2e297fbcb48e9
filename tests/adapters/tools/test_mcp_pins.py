"""The lock file of approved definitions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.adapters.tools.mcp_pins import MAX_LOCK_BYTES, Definition, PinsRefused, changes, read_pins, written_pins

COUNT = Definition(name="count", description="Count.", input_schema={"type": "object", "properties": {"n": {}}})
LOOK = Definition(name="look", title="Look", input_schema={"type": "object"}, annotations={"readOnlyHint": True})


def test_pins_are_read_as_they_were_written_and_the_file_is_the_same_whatever_the_order(tmp_path: Path) -> None:
    path = tmp_path / "mcp.lock.json"
    path.write_bytes(written_pins({"kitchen": (COUNT, LOOK), "attic": (LOOK,)}))
    assert read_pins(path) == {"attic": (LOOK,), "kitchen": (COUNT, LOOK)}
    assert written_pins({"attic": (LOOK,), "kitchen": (COUNT, LOOK)}) == path.read_bytes()


def test_without_a_file_nothing_is_approved(tmp_path: Path) -> None:
    assert read_pins(tmp_path / "mcp.lock.json") == {}


def test_a_definition_that_was_edited_by_hand_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mcp.lock.json"
    path.write_bytes(written_pins({"kitchen": (COUNT,)}).replace(b"Count.", b"Destroy."))
    with pytest.raises(PinsRefused, match="count of kitchen was edited; pin it anew"):
        read_pins(path)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"version": 2, "servers": {}}', b"\xff", b'{"servers": {"a": [{}]}}']
)
def test_what_is_no_lock_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mcp.lock.json"
    path.write_bytes(content)
    with pytest.raises(PinsRefused, match="no lock file"):
        read_pins(path)


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "mcp.lock.json"
    path.write_bytes(b" " * (MAX_LOCK_BYTES + 1))
    with pytest.raises(PinsRefused, match="larger"):
        read_pins(path)


@pytest.mark.parametrize(
    "changed",
    [
        COUNT.model_copy(update={"description": "Count. "}),
        COUNT.model_copy(update={"title": "Count"}),
        COUNT.model_copy(update={"input_schema": {"type": "object"}}),
        COUNT.model_copy(update={"output_schema": {"type": "object"}}),
        COUNT.model_copy(update={"annotations": {"readOnlyHint": True}}),
    ],
)
def test_any_change_of_a_definition_is_a_change(changed: Definition) -> None:
    assert changes([COUNT, LOOK], [changed]) == {"count": "changed", "look": "gone"}


def test_what_is_new_and_what_is_the_same_are_told_apart() -> None:
    assert changes([COUNT], [COUNT, LOOK]) == {"count": "same", "look": "new"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(schema=st.dictionaries(st.text(), JSON, max_size=4))
def test_a_digest_depends_neither_on_the_order_of_names_nor_on_a_way_through_json(
    schema: dict[str, object],
) -> None:
    definition = Definition(name="a", input_schema=schema)
    backwards = Definition(name="a", input_schema=dict(reversed(schema.items())))
    travelled = Definition.model_validate_json(json.dumps(definition.model_dump(mode="json")))
    assert definition.digest == backwards.digest == travelled.digest
