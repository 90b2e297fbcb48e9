"""Scenarios: under which policies, with which abilities and in which world a chart is explored."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..capabilities import Capabilities, RecognizerCapabilities, StreamingPolicy
from ..conversation import ConversationChart
from ..policies import (
    ConnectionPolicy,
    GenerationPolicy,
    InterruptionPolicy,
    Policies,
    TurnPolicy,
)
from ..values import InterruptionSource, TurnAuthority
from .bounds import Bounds, Family
from .prelude import (
    ABLE,
    ANNOUNCING,
    CARRIED_ON,
    HEARD,
    HEARD_AFTER_A_NOISE,
    NATIVE,
    OPENED,
    PLAYING,
    READY,
    READY_NATIVELY,
    SAID_LATE,
    SPOKEN_OVER,
    Happening,
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One exploration: every configuration that is reachable in its world, up to `configurations` of them."""

    name: str
    policies: Policies = field(default_factory=Policies)
    capabilities: Capabilities = field(default_factory=Capabilities)
    bounds: Bounds = field(default_factory=Bounds)
    before: tuple[Happening, ...] = OPENED
    """What has happened already: the exploration begins after it."""
    configurations: int = 100_000
    depth: int | None = None
    """At most this many facts in a row; None: as many as there are."""
    definition: type[ConversationChart] = ConversationChart


EVERY_SOURCE = frozenset(InterruptionSource)
TRIES = GenerationPolicy(max_attempts=2, max_tool_steps=2)
CONNECTS = ConnectionPolicy(max_attempts=2)


def policies(turn: TurnPolicy | None = None, interruption: InterruptionPolicy | None = None) -> Policies:
    """Policies with as few tries as make a difference."""
    return Policies(
        turn=turn or TurnPolicy(max_restarts=1),
        interruption=interruption or InterruptionPolicy(),
        generation=TRIES,
        connection=CONNECTS,
    )


def world(*families: Family, **amounts: int) -> Bounds:
    """Bounds that know these families of facts."""
    return Bounds(families=frozenset(families), **amounts)


F = Family
HANDS_FREE = InterruptionPolicy(EVERY_SOURCE, full_duplex=True, backoff_ms=1_000)
PAUSING = InterruptionPolicy(EVERY_SOURCE, full_duplex=True, pause_first=True)

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "connection",
        policies(),
        ABLE,
        world(F.TYPING, F.MODEL, F.OUTAGES, F.STALE, waiting_turns=2),
    ),
    Scenario("speech while connecting", policies(), ABLE, world(F.SPEECH, F.OUTAGES)),
    Scenario(
        "refused capabilities",
        Policies(connection=ConnectionPolicy(StreamingPolicy.REQUIRED, max_attempts=2)),
        Capabilities(recognizer=RecognizerCapabilities(live_input=True)),
        world(F.OUTAGES, F.STALE),
        (),
    ),
    Scenario(
        "tools",
        policies(),
        ABLE,
        world(F.TYPING, F.BUTTONS, F.MODEL, F.FAILURES, F.TOOLS, F.STALE, calls=2),
        READY,
    ),
    Scenario(
        "playback",
        policies(),
        ABLE,
        world(F.TYPING, F.BUTTONS, F.MODEL, F.AUDIO, F.TROUBLE, F.STALE, stopping_streams=2, units=2),
        READY,
    ),
    Scenario(
        "tools while playing",
        policies(interruption=InterruptionPolicy(frozenset())),
        ABLE,
        world(F.TYPING, F.BUTTONS, F.MODEL, F.TOOLS, F.AUDIO, F.TROUBLE, F.OUTAGES),
        PLAYING,
    ),
    Scenario(
        "hearing",
        policies(TurnPolicy(max_restarts=1, max_turn_words=2)),
        ABLE,
        world(F.SPEECH, F.UNHEARD, F.STALE, segments=2),
        READY,
    ),
    Scenario(
        "heard and carried on",
        policies(),
        ABLE,
        world(F.SPEECH, F.UNHEARD, F.MODEL, F.OUTAGES),
        READY,
    ),
    Scenario("announcements", policies(), ABLE, world(F.SAYING, F.TYPING, F.MODEL, F.AUDIO, F.STALE), READY),
    Scenario("announcements and outages", policies(), ABLE, world(F.SAYING, F.AUDIO, F.OUTAGES, F.BUTTONS), ANNOUNCING),
    Scenario(
        "announcements and speech",
        policies(interruption=HANDS_FREE),
        ABLE,
        world(F.SAYING, F.SPEECH, F.MODEL, F.AUDIO, announcements=2),
        READY,
    ),
    Scenario(
        "native audio",
        policies(interruption=replace(HANDS_FREE, min_duration_ms=500)),
        NATIVE,
        world(F.SPEECH, F.UNHEARD, F.MODEL, F.AUDIO, F.BUTTONS),
        READY_NATIVELY,
    ),
    Scenario("native audio, heard late", policies(), NATIVE, world(F.SPEECH, F.UNHEARD, F.MODEL), READY_NATIVELY),
    Scenario("half duplex", policies(), ABLE, world(F.SPEECH, F.BUTTONS, F.MODEL, F.AUDIO), PLAYING),
    Scenario("half duplex, not alone", policies(), ABLE, world(F.SPEECH, F.MODEL, F.AUDIO), HEARD_AFTER_A_NOISE),
    Scenario("late words", policies(), ABLE, world(F.SPEECH, F.MODEL, carried_segments=2), SAID_LATE),
    Scenario("heard to the end", policies(), ABLE, world(F.TYPING, F.MODEL, F.AUDIO, F.TROUBLE), HEARD),
    Scenario("carried on", policies(), ABLE, world(F.SPEECH, F.UNHEARD, F.OUTAGES, recognitions=3), CARRIED_ON),
    Scenario("spoken over", policies(interruption=PAUSING), ABLE, world(F.SPEECH, F.MODEL, F.AUDIO), SPOKEN_OVER),
    Scenario("pausing", policies(interruption=PAUSING), ABLE, world(F.SPEECH, F.MODEL, F.AUDIO), READY),
    Scenario(
        "paused",
        policies(interruption=replace(PAUSING, min_duration_ms=500)),
        ABLE,
        world(F.SPEECH, F.MODEL, F.AUDIO, F.TROUBLE, F.OUTAGES, F.BUTTONS),
        PLAYING,
    ),
    Scenario(
        "barge-in",
        policies(interruption=HANDS_FREE),
        ABLE,
        world(F.SPEECH, F.BUTTONS, F.MODEL, F.AUDIO, F.STALE),
        READY,
    ),
    Scenario(
        "recognizer",
        policies(TurnPolicy(TurnAuthority.RECOGNIZER, max_restarts=1), HANDS_FREE),
        ABLE,
        world(F.SPEECH, F.UNHEARD, F.MODEL, F.AUDIO),
        READY,
    ),
    Scenario(
        "manual",
        policies(TurnPolicy(TurnAuthority.MANUAL, max_restarts=1, merge_pending=False)),
        ABLE,
        world(F.SPEECH, F.TYPING, F.MODEL, F.AUDIO),
        READY,
    ),
)
"""Worlds that take every transition between them, each under a policy of its own."""
