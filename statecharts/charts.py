"""The charts by name: what diagrams, traces and the explorer can be asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from .background_task import BackgroundTask, BackgroundTaskChart, TaskContext
from .chart import Chart, ChartDefinition, Snapshot, states_of, transitions_of
from .context import Context
from .conversation import Conversation, ConversationChart
from .errors import ChartError
from .identity import IdSource
from .policies import Policies
from .recognition import Recognition, RecognitionChart, RecognitionContext
from .synthesis import Synthesis, SynthesisChart, SynthesisContext
from .tool_call import ToolCallChart, ToolCallContext, ToolCallLife


@dataclass(frozen=True, slots=True)
class KnownChart:
    """A declared chart, and how to have a running one with a given context. Embedders make one for an extension."""

    name: str
    definition: type[ChartDefinition]
    context: type[Any]
    build: Callable[[Any, Policies, IdSource], Chart[Any]]
    """Of a context, policies and identities. A chart without policies ignores them."""

    def resume(self, snapshot: Snapshot[Any], policies: Policies, ids: IdSource) -> Chart[Any]:
        """A running chart that goes on from `snapshot`. Raises `ChartError` when that is of another chart."""
        chart = self.build(snapshot.context, policies, ids)
        chart.restore(snapshot)
        return chart


def conversation_chart(name: str, definition: type[ConversationChart]) -> KnownChart:
    """A conversation of that definition: the product's own, or an embedder's extension of it."""

    def build(context: Context, policies: Policies, ids: IdSource) -> Conversation:
        return Conversation(context.conversation_id, policies=policies, ids=ids, definition=definition)

    return KnownChart(name, definition, Context, build)


CHARTS: dict[str, KnownChart] = {
    chart.name: chart
    for chart in (
        conversation_chart("conversation", ConversationChart),
        KnownChart(
            "recognition",
            RecognitionChart,
            RecognitionContext,
            lambda context, _policies, _ids: Recognition(context.recognition_id, context.stamp),
        ),
        KnownChart(
            "synthesis",
            SynthesisChart,
            SynthesisContext,
            lambda context, _policies, _ids: Synthesis(context.response_id, context.stamp),
        ),
        KnownChart(
            "tool_call",
            ToolCallChart,
            ToolCallContext,
            lambda context, _policies, _ids: ToolCallLife(
                context.call_id, context.stamp, has_side_effects=context.has_side_effects
            ),
        ),
        KnownChart(
            "background_task",
            BackgroundTaskChart,
            TaskContext,
            lambda context, _policies, _ids: BackgroundTask(
                context.task_id,
                context.stamp,
                has_side_effects=context.has_side_effects,
                resumable=context.resumable,
            ),
        ),
    )
}
"""The product's charts."""


def known_chart(name: str) -> KnownChart:
    """The chart of that name. Raises `ChartError`, which names them all."""
    chart = CHARTS.get(name)
    if chart is None:
        raise ChartError(f"there is no chart {name!r}: choose one of {', '.join(CHARTS)}")
    return chart


def name_of(definition: type[ChartDefinition]) -> str:
    """The name under which a definition is known; an extension has its class's name."""
    return next((chart.name for chart in CHARTS.values() if chart.definition is definition), definition.__name__)


def fingerprint_of(definition: type[ChartDefinition]) -> str:
    """A digest of every declared state and transition line, in order: it changes when the chart does."""
    declared = repr((states_of(definition), transitions_of(definition)))
    return blake2b(declared.encode(), digest_size=6).hexdigest()
