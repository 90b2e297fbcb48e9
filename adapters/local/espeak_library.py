"""The eSpeak NG library through ctypes.

Its C interface is `speak_lib.h` of eSpeak NG 1.52: the numbers and the layout of the event structure are from there.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol, cast

from ...audio.formats import AudioFormat
from ...engines.reports import Word
from ...statecharts.errors import ErrorScope
from .extras import required
from .synthesis_stream import Deliver, synthesis_error

_SYNCHRONOUS = 2
_DONT_EXIT = 0x8000
_POSITION_CHARACTER = 1
_CHARS_UTF8 = 1
_RATE, _PITCH = 1, 3
_EVENT_LIST_TERMINATED, _EVENT_WORD, _EVENT_END = 0, 1, 5
_OK = 0
_ABORT, _CONTINUE = 1, 0

LOCK_DEADLINE_S = 60.0


class _EventId(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8))


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _EventId),
    )


_SynthCallback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


class _Loader(Protocol):
    """The part of `espeakng_loader` in use; it ships without annotations."""

    def get_library_path(self) -> str: ...
    def get_data_path(self) -> str: ...


_WRITTEN_WORD = re.compile(r"\S*\w\S*")


class _WrittenWords:
    """The pieces of a text between spaces, as eSpeak NG's marks tell when they are heard.

    It marks spoken words, which are more than the written ones ("3:45" is three): a written word begins with its first
    mark and ends where the next mark of something else is. One without a mark is not heard. A dash on its own is where
    the mark of the word behind it stands.
    """

    def __init__(self, text: str) -> None:
        self._spans = [(match.group(), match.end()) for match in _WRITTEN_WORD.finditer(text)]
        self._begun: tuple[str, int] | None = None
        self._place = 0
        self.words: list[Word] = []

    def mark(self, position: int, sample: int) -> None:
        """At `sample` of the unit something is spoken that stands at character `position` of its text, from 0."""
        own = next((place for place, (_, end) in enumerate(self._spans) if position < end), len(self._spans))
        if own == self._place - 1 and self._begun is not None:
            return
        self.end(sample)
        if own >= self._place and own < len(self._spans):
            self._begun, self._place = (self._spans[own][0], sample), own + 1

    def end(self, sample: int) -> None:
        """A sentence ends at `sample`, or everything does."""
        if self._begun is not None:
            text, start = self._begun
            self.words.append(Word(text, start, max(sample, start)))
            self._begun = None


class EspeakLibrary:
    """The one copy of the library in this process. Its state is global, so that one text at a time is spoken."""

    def __init__(self) -> None:
        loader = cast("_Loader", required("espeakng_loader", "local", "synthesis"))
        try:
            self._lib = ctypes.CDLL(loader.get_library_path())
        except OSError as broken:
            message = "the eSpeak NG library cannot be loaded; reinstall espeakng-loader for this platform"
            raise synthesis_error("library_unusable", message, ErrorScope.SESSION) from broken
        rate_hz = int(self._lib.espeak_Initialize(_SYNCHRONOUS, 0, loader.get_data_path().encode(), _DONT_EXIT))
        if rate_hz <= 0:
            message = "eSpeak NG does not start: its data is missing; reinstall espeakng-loader"
            raise synthesis_error("library_unusable", message, ErrorScope.SESSION)
        self.format = AudioFormat(rate_hz)
        self._lock = threading.Lock()
        self._count_lock = threading.Lock()
        self._waiting = 0
        self._deliver: Deliver = _refuse
        self._written = _WrittenWords("")
        self._told = 0
        self._samples = 0
        self._failure: BaseException | None = None
        # The library calls it later on: it must live as long as the library, that is, for ever.
        self._callback = _SynthCallback(self._on_audio)
        self._lib.espeak_SetSynthCallback(self._callback)

    @property
    def contended(self) -> bool:
        """Another thread waits for its turn."""
        return self._waiting > 0

    def check_voice(self, voice: str) -> None:
        """Raises `PortError` for a voice that eSpeak NG does not know."""
        with self._turn():
            self._set_voice(voice)

    def speak(self, text: str, voice: str, rate_wpm: int, pitch: int, deliver: Deliver) -> tuple[Word, ...]:
        """Hand over PCM (about 60 ms at a time) while it is made, with the words that have ended; stop at once when
        `deliver` returns False.

        Returns the words that were spoken. Whatever `deliver` raises, this raises.
        """
        encoded = text.encode()
        with self._turn():
            self._set_voice(voice)
            self._lib.espeak_SetParameter(_RATE, rate_wpm, 0)
            self._lib.espeak_SetParameter(_PITCH, pitch, 0)
            self._deliver, self._failure, self._samples = deliver, None, 0
            self._written, self._told = _WrittenWords(text), 0
            result = int(
                self._lib.espeak_Synth(encoded, len(encoded) + 1, 0, _POSITION_CHARACTER, 0, _CHARS_UTF8, None, None)
            )
            failure, self._failure = self._failure, None
            self._deliver = _refuse
            if failure is not None:
                raise failure
            if result != _OK:
                raise synthesis_error("engine_failed", f"eSpeak NG refused the text (code {result})")
            self._written.end(self._samples)
            return tuple(self._written.words)

    @contextmanager
    def _turn(self) -> Generator[None]:
        self._count(+1)
        try:
            entered = self._lock.acquire(timeout=LOCK_DEADLINE_S)
        finally:
            self._count(-1)
        if not entered:
            message = f"eSpeak NG was busy for {LOCK_DEADLINE_S} s: another reader does not read its speech"
            raise synthesis_error("engine_busy", message)
        try:
            yield
        finally:
            self._lock.release()

    def _count(self, change: int) -> None:
        with self._count_lock:
            self._waiting += change

    def _set_voice(self, voice: str) -> None:
        if int(self._lib.espeak_SetVoiceByName(voice.encode())) != _OK:
            message = f"eSpeak NG has no voice {voice!r}; `espeak-ng --voices` lists them, e.g. en-us, en-us+f3, cmn"
            raise synthesis_error("unknown_voice", message, ErrorScope.SESSION)

    def _on_audio(self, wav: Any, samples: int, events: Any) -> int:  # noqa: ANN401  # ctypes pointers
        try:
            index = 0
            while (event := events[index]).type != _EVENT_LIST_TERMINATED:
                if event.type == _EVENT_WORD:
                    self._written.mark(event.text_position - 1, event.sample)
                elif event.type == _EVENT_END:
                    self._written.end(event.sample)
                index += 1
            if not wav or samples <= 0:
                return _CONTINUE
            self._samples += samples
            words = tuple(self._written.words[self._told :])
            self._told += len(words)
            return _CONTINUE if self._deliver(ctypes.string_at(wav, samples * 2), words) else _ABORT
        except BaseException as failure:  # it cannot cross the C frames: `speak` raises it again
            self._failure = failure
            return _ABORT


@cache
def espeak_library() -> EspeakLibrary:
    """The library, loaded at the first call. Raises `PortError` when it is not installed."""
    return EspeakLibrary()


def _refuse(pcm: bytes, words: tuple[Word, ...] = ()) -> bool:
    """Nobody is spoken to."""
    return False
