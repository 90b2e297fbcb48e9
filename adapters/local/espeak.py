"""eSpeak NG as a synthesiser: robotic, but its first audio is there within a millisecond, in a hundred languages.

Licence: eSpeak NG is GPL-3.0-or-later, and the package `espeakng-loader` brings its compiled library. It is loaded only
here and comes only with the extra `local`; a product that cannot be under the GPL leaves both out (see `pico.py`).
"""

from __future__ import annotations

from ...audio.formats import AudioFormat
from ...engines.reports import Word
from ...statecharts.capabilities import SynthesizerCapabilities
from ...statecharts.errors import ErrorScope
from .espeak_library import EspeakLibrary, espeak_library
from .synthesis_stream import Deliver, SpeechEngine, SynthesisBounds, synthesis_error
from .synthesizer import ThreadedSynthesizer

DEFAULT_VOICE = "en-us"


class EspeakSynthesizer(ThreadedSynthesizer):
    """Speaks 22.05 kHz mono with word times; a cancel ends the synthesis inside the word.

    Voices are eSpeak NG's names, with a variant after a plus: "en-us", "en-gb-x-rp", "en-us+f3", "cmn", "yue". The
    library is one for the whole process, however many synthesisers there are: units take turns, and while a unit waits
    for its reader others may make it finish beyond the buffer's bound (by one unit at most).
    """

    name = "espeak"

    def __init__(
        self,
        *,
        voice: str = DEFAULT_VOICE,
        rate_wpm: int = 165,
        pitch: int = 50,
        bounds: SynthesisBounds | None = None,
    ) -> None:
        """`rate_wpm`: 80 to 450 words a minute. `pitch`: 0 to 99. Raises `PortError` outside."""
        if not 80 <= rate_wpm <= 450 or not 0 <= pitch <= 99:
            message = f"rate_wpm = {rate_wpm} must be 80–450 and pitch = {pitch} must be 0–99"
            raise synthesis_error("bad_setting", message, ErrorScope.SESSION)
        super().__init__(voice, bounds or SynthesisBounds())
        self._rate_wpm = rate_wpm
        self._pitch = pitch

    @property
    def capabilities(self) -> SynthesizerCapabilities:
        return SynthesizerCapabilities(incremental_pcm=True, alignment=True)

    def _load(self) -> SpeechEngine:
        return _EspeakEngine(espeak_library(), self._rate_wpm, self._pitch)


class _EspeakEngine:
    def __init__(self, library: EspeakLibrary, rate_wpm: int, pitch: int) -> None:
        self._library = library
        self._rate_wpm = rate_wpm
        self._pitch = pitch

    @property
    def format(self) -> AudioFormat:
        return self._library.format

    @property
    def contended(self) -> bool:
        return self._library.contended

    def check_voice(self, voice: str) -> None:
        self._library.check_voice(voice)

    def speak(self, text: str, voice: str, deliver: Deliver) -> tuple[Word, ...]:
        return self._library.speak(text, voice, self._rate_wpm, self._pitch, deliver)
