"""A found sequence of facts as a test: Python that an editor opens and pytest runs."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum

from ..facts import Fact
from .scenario import Scenario


def test_of(scenario: Scenario, invariant: str, message: str, facts: tuple[Fact, ...]) -> str:
    """A pytest module that replays `facts` and fails as long as the chart breaks `invariant`."""
    writer = _Writer()
    policies = writer.literal(scenario.policies)
    told = [f"    conversation.handle({writer.literal(fact)})" for fact in facts]
    definition = scenario.definition
    writer.need("voicechart.statecharts", "Conversation")
    writer.need("voicechart.statecharts.invariants", "Checker")
    arguments = f"{scenario.name!r}, policies={policies}"
    if definition.__name__ != "ConversationChart":
        writer.need(definition.__module__, definition.__name__)
        arguments += f", definition={definition.__name__}"
    name = re.sub(r"\W+", "_", f"{scenario.name}_keeps_{invariant}")
    return "\n".join(
        [
            *writer.imports(),
            "",
            "",
            f"def test_{name}() -> None:",
            f"    # {' '.join(message.split())}",
            f"    conversation = Conversation({arguments})",
            "    checker = Checker(conversation, collect=True)",
            *told,
            "    assert not checker.violations",
            "",
        ]
    )


class _Writer:
    """Writes values as Python and notes what has to be imported for it."""

    def __init__(self) -> None:
        self._needed: dict[str, set[str]] = {}

    def need(self, module: str, name: str) -> None:
        self._needed.setdefault(module, set()).add(name)

    def imports(self) -> list[str]:
        return [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(self._needed.items())]

    def literal(self, value: object) -> str:
        """`value` as an expression; fields at their defaults are left out."""
        if isinstance(value, Enum):
            self._need_class(value)
            return f"{type(value).__name__}.{value.name}"
        if is_dataclass(value) and not isinstance(value, type):
            return self._dataclass(value)
        if isinstance(value, frozenset):
            members = ", ".join(sorted(map(self.literal, value)))  # pyright: ignore[reportUnknownArgumentType]
            return f"frozenset({{{members}}})" if members else "frozenset()"
        if isinstance(value, tuple):
            members = ", ".join(map(self.literal, value))  # pyright: ignore[reportUnknownArgumentType]
            return f"({members},)" if members else "()"
        return repr(value)

    def _dataclass(self, value: object) -> str:
        self._need_class(value)
        told: list[str] = []
        for spec in fields(value):  # pyright: ignore[reportArgumentType] - checked by the caller
            present: object = getattr(value, spec.name)
            default: object = spec.default
            if default is MISSING and spec.default_factory is not MISSING:
                default = spec.default_factory()
            if present != default:
                told.append(f"{spec.name}={self.literal(present)}")
        return f"{type(value).__name__}({', '.join(told)})"

    def _need_class(self, value: object) -> None:
        self.need(type(value).__module__, type(value).__name__)
