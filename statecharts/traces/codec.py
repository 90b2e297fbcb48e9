"""Frozen values to JSON and back, by their declared types.

Facts, actions, contexts and policies are dataclasses of scalars, enums, tuples and further dataclasses; that is all
this codec knows, besides JSON objects that are kept as they are. A value of a family (`Fact`, `Action`, `Payload`) is
written with its class name as `type`, because a place that holds one may hold any. Every other value is of the type
that its place declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from ..actions import Action
from ..facts import Fact
from ..published import Payload

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
JsonObject = dict[str, Json]
TextFilter = Callable[[str], str]
"""What becomes of every field that is named `text`: what people said or typed."""

_FAMILIES: tuple[type[Any], ...] = (Fact, Action, Payload)
_SCALARS = frozenset({NoneType, bool, int, float, str})
_OWN_MODULES = f"{Fact.__module__.rpartition('.')[0]}."
ValueT = TypeVar("ValueT")


class CodecError(ValueError):
    """A value that cannot be written, or JSON that is not of the declared type. Says where."""


def encode(value: object, text: TextFilter | None = None) -> Json:
    """The JSON of a value. Raises `CodecError` for what is no value."""
    kind = type(value)
    if kind in _SCALARS:
        return cast("Json", value)
    if kind is tuple or kind is list:
        return [encode(item, text) for item in cast("tuple[object, ...]", value)]
    if is_dataclass(kind):
        return encode_fields(value, text)
    if isinstance(value, Enum):
        return encode(value.value)
    if kind is dict:
        return cast("JsonObject", value)
    if isinstance(value, frozenset):
        return sorted((encode(item, text) for item in cast("frozenset[object]", value)), key=str)
    raise CodecError(f"{kind.__qualname__} is no value that a trace can hold: {value!r}")


def encode_fields(value: object, text: TextFilter | None = None) -> JsonObject:
    """The JSON object of a dataclass, with its `type` when it belongs to a family."""
    kind = type(value)
    name_in_family, names = _shape(kind)
    encoded: JsonObject = {"type": name_in_family} if name_in_family else {}
    for name in names:
        item = getattr(value, name)
        if type(item) in _SCALARS:
            encoded[name] = text(item) if name == "text" and text is not None and isinstance(item, str) else item
        else:
            encoded[name] = encode(item, text)
    return encoded


def decode(kind: type[ValueT], raw: Json, where: str = "") -> ValueT:
    """The value of that type; fields that are missing take their defaults. Raises `CodecError` when `raw` is none."""
    return cast("ValueT", _decode(kind, raw, where or kind.__name__))


def _decode(kind: Any, raw: Json, where: str) -> object:  # noqa: ANN401 - a type form
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _decode_union(get_args(kind), raw, where)
    if origin in (tuple, frozenset):
        items = [_decode(get_args(kind)[0], item, f"{where}[{place}]") for place, item in enumerate(_list(raw, where))]
        return frozenset(items) if origin is frozenset else tuple(items)
    if origin is dict:
        if not isinstance(raw, dict):
            raise CodecError(f"{where}: {raw!r} is no object")
        return raw
    if not isinstance(kind, type):
        raise CodecError(f"{where}: {kind} cannot be read from a trace")
    if is_dataclass(kind):
        return _decode_fields(kind, raw, where)
    if issubclass(kind, Enum):
        try:
            return kind(raw)
        except ValueError:
            raise CodecError(f"{where}: {raw!r} is no {kind.__name__}") from None
    return _decode_scalar(cast("type[object]", kind), raw, where)


def _decode_scalar(kind: type[object], raw: Json, where: str) -> object:
    if kind is float and isinstance(raw, int) and not isinstance(raw, bool):
        return float(raw)
    if type(raw) is not kind or kind not in (bool, int, float, str, NoneType):
        raise CodecError(f"{where}: {raw!r} is no {kind.__name__}")
    return raw


def _decode_union(arms: tuple[Any, ...], raw: Json, where: str) -> object:
    reasons: list[str] = []
    for arm in sorted(arms, key=lambda arm: arm is not NoneType):
        try:
            return _decode(arm, raw, where)
        except CodecError as error:
            reasons.append(str(error))
    raise CodecError(reasons[-1])


def _decode_fields(kind: type[Any], raw: Json, where: str) -> object:
    if not isinstance(raw, dict):
        raise CodecError(f"{where}: {raw!r} is no {kind.__name__}")
    given = dict(raw)
    family = next((family for family in _FAMILIES if issubclass(kind, family)), None)
    if family is not None:
        kind = _member(kind, given.pop("type", None), where)
    hints = _hints(kind)
    unknown = sorted(given.keys() - hints.keys())
    if unknown:
        raise CodecError(f"{where}: {kind.__name__} has no {unknown[0]!r}")
    missing = sorted(name for name in _required(kind) if name not in given)
    if missing:
        raise CodecError(f"{where}: {kind.__name__} needs {missing[0]!r}")
    values = {name: _decode(hints[name], item, f"{where}.{name}") for name, item in given.items()}
    try:
        return kind(**values)
    except ValueError as error:
        raise CodecError(f"{where}: {error}") from error


@cache
def _name_in_family(kind: type[Any]) -> str:
    """The product's own classes by name; an embedder's with its module."""
    own = kind.__module__.startswith(_OWN_MODULES)
    return kind.__name__ if own else f"{kind.__module__}:{kind.__qualname__}"


def _member(kind: type[Any], name: Json, where: str) -> type[Any]:
    """The class of that name in a family. Classes of embedders count once they are imported."""
    named = [member for member in _descendants(kind) if _name_in_family(member) == name]
    if not named:
        raise CodecError(f"{where}: {name!r} is no {kind.__name__} that this version knows")
    return named[-1]  # a dataclass with slots is made anew from the class that was written, which may still be there


def _descendants(kind: type[Any]) -> Iterator[type[Any]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _descendants(child)


def _list(raw: Json, where: str) -> list[Json]:
    if not isinstance(raw, list):
        raise CodecError(f"{where}: {raw!r} is no list")
    return raw


@cache
def _shape(kind: type[Any]) -> tuple[str, tuple[str, ...]]:
    """The name in its family ("" outside of one) and the names of the fields."""
    return _name_in_family(kind) if issubclass(kind, _FAMILIES) else "", _names(kind)


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {name: hints[name] for name in _names(kind)}


@cache
def _required(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING)
