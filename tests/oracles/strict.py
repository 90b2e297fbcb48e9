"""Judging a JSON message by a vendor's types, without mercy.

The SDKs parse leniently: most models keep unknown keys, some drop them, pydantic turns "1200" into 1200, OpenAI's own
parser builds the wrong member of a union for a beta name rather than fail, and pydantic looks into what a request
declares as `Iterable` only while somebody iterates. `check` therefore picks the member by its discriminator, goes
through the message itself, and refuses every key that the type does not declare, at any depth.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from typing_extensions import TypeAliasType, get_type_hints, is_typeddict

Json = Any
Wanted = Any
"""A model, a TypedDict, a union of them, or a part of one: what a type checker has no name for."""

MARKS = frozenset({"Required", "NotRequired", "ReadOnly"})


class Refused(AssertionError):
    """The vendor's types do not allow this message; the text says where."""


def check(
    message: Json,
    wanted: Wanted,
    *,
    tag: str = "type",
    exact_types: bool = False,
    besides: frozenset[str] = frozenset(),
) -> None:
    """Raises `Refused` unless `message` is what `wanted` declares: a model, a TypedDict or a union of them.

    `tag`: the key that tells the members of a union apart. `exact_types`: no silent conversions ("1200" is no int), for
    what we send. `besides`: keys that the live service is known to send although the types lack them; say why where you
    use it.
    """
    found = [
        [fault for fault in _faults_of_member(message, member, "$", exact_types) if fault.key not in besides]
        for member in _candidates(message, wanted, tag)
    ]
    if all(found):
        raise Refused("; ".join(map(str, min(found, key=len))))


def members(wanted: Wanted) -> tuple[Wanted, ...]:
    """The members of a union, however it is wrapped; anything else is its own only member."""
    if isinstance(wanted, TypeAliasType):
        return members(wanted.__value__)
    origin = get_origin(wanted)
    if origin is Annotated or _name(origin) in MARKS:
        return members(get_args(wanted)[0])
    if origin in (Union, UnionType):
        return tuple(member for argument in get_args(wanted) for member in members(argument))
    return (wanted,)


class Fault(str):
    """What is wrong at one place. `key`: the key that is not declared, where it is that."""

    key: str | None = None


def _fault(path: str, text: str, key: str | None = None) -> Fault:
    fault = Fault(f"{path}: {text}")
    fault.key = key
    return fault


def _candidates(message: Json, wanted: Wanted, tag: str) -> tuple[Wanted, ...]:
    """The members whose discriminator has the message's value; all of them where there is none."""
    every = members(wanted)
    values = {member: _literals((_fields(member) or {}).get(tag)) for member in every}
    if not isinstance(message, Mapping) or tag not in message or not any(values.values()):
        return every
    fitting = tuple(member for member in every if message[tag] in values[member])
    if not fitting:
        raise Refused(f"no such {tag}: {message[tag]!r}")
    return fitting


def _faults(value: Json, wanted: Wanted, path: str, exact: bool) -> list[Fault]:
    """Those of the member that fits best; none where one fits."""
    return min((_faults_of_member(value, member, path, exact) for member in members(wanted)), key=len)


def _faults_of_member(value: Json, member: Wanted, path: str, exact: bool) -> list[Fault]:
    origin, arguments = get_origin(member) or member, get_args(member)
    if member in (Any, object):
        return []
    if origin is Literal:
        return [] if _is_one_of(value, arguments) else [_fault(path, f"{value!r} is none of {arguments}")]
    declared = _fields(member)
    if declared is not None:
        return _faults_of_object(value, member, declared, path, exact)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            return [_fault(path, "no object")]
        below = arguments[1] if arguments else Any
        return [fault for key, item in value.items() for fault in _faults(item, below, f"{path}.{key}", exact)]
    if arguments and isinstance(origin, type) and hasattr(origin, "__iter__"):
        if not isinstance(value, list):
            return [_fault(path, "no list")]
        places = enumerate(value)
        return [fault for place, item in places for fault in _faults(item, arguments[0], f"{path}[{place}]", exact)]
    return _faults_by_pydantic(value, member, path, exact)


def _faults_of_object(value: Json, member: Wanted, declared: dict[str, Wanted], path: str, exact: bool) -> list[Fault]:
    if not isinstance(value, dict):
        return [_fault(path, f"no object, as {_name(member)} is")]
    faults = [_fault(path, f"{_name(member)} has no key {key!r}", key) for key in value if key not in declared]
    if is_typeddict(member):
        faults += [_fault(path, f"no {key!r}") for key in sorted(member.__required_keys__ - value.keys())]
    else:
        faults += _faults_by_pydantic(value, member, path, exact)
    for key, item in value.items():
        if key in declared:
            faults += _faults(item, declared[key], f"{path}.{key}", exact)
    return faults


def _faults_by_pydantic(value: Json, member: Wanted, path: str, exact: bool) -> list[Fault]:
    try:
        _adapter(member).validate_json(json.dumps(value), strict=exact)
    except ValidationError as error:
        return [_fault(".".join([path, *map(str, fault["loc"])]), fault["msg"]) for fault in error.errors()]
    return []


@cache
def _fields(member: Wanted) -> dict[str, Wanted] | None:
    """Key → annotation, aliases included; None for what is no model and no TypedDict."""
    if isinstance(member, type) and issubclass(member, BaseModel):
        declared: dict[str, Wanted] = {}
        for name, field in member.model_fields.items():
            aliases = (field.alias, field.serialization_alias, field.validation_alias)
            declared |= {key: field.annotation for key in (name, *aliases) if isinstance(key, str)}
        return declared
    if is_typeddict(member):
        return get_type_hints(member, include_extras=True)
    return None


def _literals(wanted: Wanted) -> tuple[Json, ...]:
    found = (get_args(member) for member in members(wanted) if get_origin(member) is Literal)
    return tuple(value for values in found for value in values)


def _is_one_of(value: Json, allowed: tuple[Json, ...]) -> bool:
    return any(type(value) is type(one) and value == one for one in allowed)


@cache
def _adapter(member: Wanted) -> TypeAdapter[Json]:
    return TypeAdapter(NoneType if member is None else member)


def _name(member: Wanted) -> str:
    return getattr(member, "__name__", None) or str(member)
