"""How much a synthesiser takes at a time."""

from __future__ import annotations

from enum import StrEnum

from ...statecharts.capabilities import SynthesizerCapabilities


class UnitGrain(StrEnum):
    """The size of a unit of speech."""

    CLAUSE = "clause"
    """Clauses and sentences, as early as they are safe: for a synthesiser that keeps its tone from one to the next."""
    SENTENCE = "sentence"
    """Sentences; only the first unit may be a clause."""
    WHOLE = "whole"
    """The whole reply, a long one in groups of sentences: for a synthesiser that takes one text and gives one audio."""


def grain_for(capabilities: SynthesizerCapabilities) -> UnitGrain:
    """The finest that this synthesiser can take."""
    if capabilities.incremental_text:
        return UnitGrain.CLAUSE
    return UnitGrain.SENTENCE if capabilities.sentence_input else UnitGrain.WHOLE


def synthesis_degradation(capabilities: SynthesizerCapabilities) -> str | None:
    """What the user waits for because of this synthesiser; None when it streams."""
    if grain_for(capabilities) is UnitGrain.WHOLE:
        return "synthesizer: whole replies only, speech begins when the model has ended"
    if not capabilities.incremental_pcm:
        return "synthesizer: one sentence at a time, first audio waits for the whole sentence"
    return None
