"""Which transition lines make up the barge-in transaction, found in the chart's own methods.

An accepted interruption is one transaction over several regions: the line that carries it out raises an event, and the
lines of that event follow in the same macrostep. Which event that is stands in the code of the action alone, so that is
where it is looked up.
"""

from __future__ import annotations

from types import CodeType, FunctionType

from ...statecharts.chart import ChartDefinition, anatomy_of, transitions_of

CARRIES_OUT = "carry_out_interruption"
"""The action with which the transaction begins."""


def barge_in_rows(definition: type[ChartDefinition]) -> frozenset[int]:
    """Places of the declared transitions of the transaction; none in a chart that cannot be interrupted."""
    transitions = transitions_of(definition)
    events = decided_by(definition, CARRIES_OUT)
    return frozenset(
        row for row, line in enumerate(transitions) if CARRIES_OUT in line.actions or not events.isdisjoint(line.events)
    )


def decided_by(definition: type[ChartDefinition], action: str) -> frozenset[str]:
    """The events that an action raises by itself, as the constants of its code name them."""
    method = getattr(definition, action, None)
    if not isinstance(method, FunctionType):
        return frozenset()
    code: CodeType = method.__code__
    if "decide" not in code.co_names:
        return frozenset()
    known = anatomy_of(definition).events()
    return frozenset(constant for constant in code.co_consts if isinstance(constant, str) and constant in known)
