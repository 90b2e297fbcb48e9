"""Arguments by a JSON Schema that somebody else wrote."""

from __future__ import annotations

from typing import Any, Protocol, cast

from jsonschema import SchemaError, validators
from referencing import Registry
from referencing.exceptions import Unresolvable

from ...engines.tool_arguments import ArgumentsRefused, read_object, refused


class SchemaRefused(ValueError):
    """The schema is none that arguments can be checked by."""


class _Fault(Protocol):
    @property
    def absolute_path(self) -> tuple[str | int, ...]: ...
    @property
    def message(self) -> str: ...


class _Validator(Protocol):
    def iter_errors(self, instance: object) -> list[_Fault]: ...


class SchemaForm:
    """Implements `ArgumentsForm`. Raises `SchemaRefused`; references to other documents are never followed."""

    def __init__(self, schema: dict[str, Any]) -> None:
        if schema.get("type") != "object":
            raise SchemaRefused("its schema does not describe an object")
        self._schema = schema
        kind: Any = validators.validator_for(schema, default=validators.validator_for({}))
        try:
            kind.check_schema(schema)
        except SchemaError:
            raise SchemaRefused("its schema is no valid JSON Schema") from None
        registry: Registry[Any] = Registry()
        self._validator = cast("_Validator", kind(schema, registry=registry))

    def json_schema(self) -> dict[str, Any]:
        """As it was given."""
        return self._schema

    def parse(self, text: str) -> dict[str, Any]:
        """The object itself, valid."""
        arguments = read_object(text)
        try:
            faults = [(fault.absolute_path, fault.message[:200]) for fault in self._validator.iter_errors(arguments)]
        except (Unresolvable, RecursionError):
            raise ArgumentsRefused("arguments: the tool's schema cannot be followed") from None
        if faults:
            raise refused(faults)
        return arguments
