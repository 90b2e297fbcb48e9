"""The arguments of a call: one JSON object, read strictly, and valid against the tool's declaration before it runs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol, cast, runtime_checkable

from pydantic import BaseModel, ValidationError

MAX_ARGUMENTS_BYTES = 65_536
MAX_DEPTH = 32
"""Of objects and lists in each other."""
MAX_FAULTS = 8
"""How many faults a model is told of at once."""


class ArgumentsRefused(ValueError):
    """The arguments cannot be used. Its text goes to the model, which may try again."""


@runtime_checkable
class ArgumentsForm(Protocol):
    """What the arguments of a tool look like, where that is not a pydantic model."""

    def json_schema(self) -> dict[str, Any]:
        """A JSON Schema of an object."""
        ...

    def parse(self, text: str) -> object:
        """What `run` gets. `text` is one strict JSON object. Raises `ArgumentsRefused`."""
        ...


class ModelForm:
    """The arguments are a pydantic model. Implements `ArgumentsForm`."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model

    def json_schema(self) -> dict[str, Any]:
        """As pydantic derives it."""
        return self._model.model_json_schema()

    def parse(self, text: str) -> object:
        """An instance of the model."""
        try:
            return self._model.model_validate_json(text)
        except ValidationError as error:
            raise refused([(fault["loc"], fault["msg"]) for fault in error.errors(include_url=False)]) from None


def refused(faults: Sequence[tuple[Sequence[object], str]]) -> ArgumentsRefused:
    """One error of many faults: where, and what is wrong there."""
    told = [f"{'.'.join(map(str, place)) or 'arguments'}: {words}" for place, words in faults[:MAX_FAULTS]]
    return ArgumentsRefused("; ".join(told))


def read_object(text: str) -> dict[str, Any]:
    """One JSON object as RFC 8259 has it: each name once, no NaN or infinity, whole Unicode. Raises `ArgumentsRefused`.

    An empty text is an empty object: some models say that of a tool without parameters.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ArgumentsRefused("arguments: half a character") from None
    if size > MAX_ARGUMENTS_BYTES:
        raise ArgumentsRefused(f"arguments: longer than {MAX_ARGUMENTS_BYTES} bytes")
    try:
        value = json.loads(text or "{}", object_pairs_hook=_each_once, parse_constant=_no_number, parse_float=_finite)
    except ArgumentsRefused:
        raise
    except (ValueError, RecursionError) as error:
        raise ArgumentsRefused(f"arguments: Invalid JSON ({_where(error)})") from None
    if not isinstance(value, dict):
        raise ArgumentsRefused("arguments: must be one JSON object")
    found = cast("dict[str, Any]", value)
    _check(found, MAX_DEPTH)
    return found


def canonical(value: dict[str, Any]) -> str:
    """The same text for the same arguments, in whatever order they were written."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            # Which of the two is meant is anybody's guess, and readers differ in it.
            raise ArgumentsRefused(f"{name[:64]}: given twice")
        found[name] = value
    return found


def _no_number(name: str) -> NoReturn:
    raise ArgumentsRefused(f"arguments: {name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ArgumentsRefused("arguments: a number that is too large")
    return number


def _check(value: object, depth: int) -> None:
    match value:
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ArgumentsRefused("arguments: half a character") from None
        case dict() | list() if depth == 0:
            raise ArgumentsRefused(f"arguments: nested more than {MAX_DEPTH} deep")
        case dict():
            for name, member in cast("dict[str, object]", value).items():
                _check(name, depth - 1)
                _check(member, depth - 1)
        case list():
            for member in cast("list[object]", value):
                _check(member, depth - 1)
        case _:
            pass


def _where(error: ValueError | RecursionError) -> str:
    return f"{error.msg} at {error.pos}" if isinstance(error, json.JSONDecodeError) else "it cannot be read"
