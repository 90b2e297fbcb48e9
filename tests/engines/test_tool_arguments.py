"""Arguments are read strictly, and valid before anything runs."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from voicechart.engines.tool_arguments import (
    MAX_ARGUMENTS_BYTES,
    MAX_DEPTH,
    ArgumentsForm,
    ArgumentsRefused,
    ModelForm,
    canonical,
    read_object,
)


class Place(BaseModel):
    city: str
    days: int = 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"city": "Oslo", "city": "Rome"}', "city: given twice"),
        ('{"a": {"b": 1, "b": 1}}', "b: given twice"),
        ('{"days": NaN}', "NaN is no JSON"),
        ('{"days": -Infinity}', "-Infinity is no JSON"),
        ('{"days": 1e999}', "too large"),
        ('{"days": ' + "9" * 5_000 + "}", "Invalid JSON"),
        ("[1]", "must be one JSON object"),
        ("3", "must be one JSON object"),
        ("{", "Invalid JSON"),
        ('{"a": 1} {"a": 2}', "Invalid JSON"),
        ('{"a": "\\ud800"}', "half a character"),
        ('{"\\ud800": 1}', "half a character"),
        ('{"a": "\ud800"}', "half a character"),
        ('{"a": ' + "[" * 40 + "]" * 40 + "}", "nested"),
        ('{"a": ' + "[" * 100_000, "longer than"),
        ('{"a": ' + "[" * 30_000 + "]" * 30_000 + "}", "Invalid JSON|nested"),
    ],
)
def test_what_is_no_strict_json_object_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ArgumentsRefused, match=reason):
        read_object(text)


def test_an_empty_text_is_an_empty_object() -> None:
    assert read_object("") == {}


def test_the_longest_arguments_are_taken_and_one_byte_more_is_refused() -> None:
    longest = '{"a": "' + "x" * (MAX_ARGUMENTS_BYTES - 9) + '"}'
    assert len(longest) == MAX_ARGUMENTS_BYTES
    assert read_object(longest)
    with pytest.raises(ArgumentsRefused, match="longer"):
        read_object(longest + " ")


def test_the_deepest_arguments_are_taken_and_one_level_more_is_refused() -> None:
    def nested(depth: int) -> str:
        return '{"a":' * depth + "1" + "}" * depth

    assert read_object(nested(MAX_DEPTH))
    with pytest.raises(ArgumentsRefused, match="nested"):
        read_object(nested(MAX_DEPTH + 1))


def test_bytes_are_counted_not_characters() -> None:
    with pytest.raises(ArgumentsRefused, match="longer"):
        read_object('{"a": "' + "奥" * (MAX_ARGUMENTS_BYTES // 3) + '"}')


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(value=st.dictionaries(st.text(), JSON_VALUES, max_size=4))
def test_every_json_object_reads_as_itself_and_its_canonical_form_does_not_depend_on_order(
    value: dict[str, object],
) -> None:
    assert read_object(json.dumps(value)) == value
    backwards = dict(reversed(value.items()))
    assert canonical(read_object(json.dumps(backwards))) == canonical(value)


def test_a_model_is_a_form_with_its_own_schema_and_its_faults_name_their_places() -> None:
    form = ModelForm(Place)
    assert isinstance(form, ArgumentsForm)
    assert set(form.json_schema()["properties"]) == {"city", "days"}
    assert form.parse('{"city": "Oslo"}') == Place(city="Oslo")
    with pytest.raises(ArgumentsRefused, match=r"city: Field required; days: Input should be a valid integer"):
        form.parse('{"days": "many"}')
