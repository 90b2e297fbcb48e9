"""The demo's conversation: a long story is asked for, interrupted, and the time is asked instead."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...audio.formats import AudioFrame
from ...engines.ports import SpeechUnit, SynthesisRequest, Synthesizer
from ...engines.reports import PortError, SynthesisErrored, Synthesized
from ...statecharts.policies import words_of
from ...statecharts.values import DeliveryStatus, Outcome
from ..composition import make_voice
from ..configuration import CompanionSettings, PicoVoice
from ..providers import ProviderSettings
from .checks import Check
from .findings import Findings

QUESTIONS = ("Tell me a long story.", "What time is it?")
BARGE_IN_AFTER_MS = 6_500
"""Far enough into the story that its first sentence was heard whole."""
DEADLINE_S = 75.0
COMPANION = CompanionSettings(kind="companion", token_ms=60)
"""It writes the story slowly enough that it is interrupted in the middle, and faster than anybody speaks."""
PROMPT = "You are a voice assistant that loves to tell stories. Speak in plain sentences. A story has many sentences."
"""For language models: a story that is over before it can be interrupted proves nothing."""

_TELLS_THE_TIME = re.compile(r"\bit is \d{1,2}:\d\d\b", re.IGNORECASE)


def answerer(settings: ProviderSettings) -> ProviderSettings:
    """Who answers in the demo: as asked for, and long enough to be interrupted."""
    if isinstance(settings, CompanionSettings):
        return COMPANION
    return settings.model_copy(update={"system_prompt": PROMPT})


def user_voice(assistant: ProviderSettings) -> PicoVoice:
    """Another voice than the assistant's; Whisper understands both of Pico's English ones."""
    is_taken = isinstance(assistant, PicoVoice) and assistant.name == "en-GB"
    return PicoVoice(kind="pico", name="en-US" if is_taken else "en-GB")


async def spoken(voice: PicoVoice, texts: tuple[str, ...]) -> tuple[AudioFrame, ...]:
    """Each text as a recording of that voice. Raises `PortError` and `ConfigurationRefused`."""
    synthesizer = make_voice(voice).port
    try:
        await synthesizer.prepare()
        return tuple([await _spoken(text, synthesizer) for text in texts])
    finally:
        await synthesizer.aclose()


async def _spoken(text: str, synthesizer: Synthesizer) -> AudioFrame:
    stream = await synthesizer.open(SynthesisRequest("user", 0))
    pcm = bytearray()
    try:
        await stream.write(SpeechUnit(0, text))
        await stream.finish_input()
        async for report in stream.reports():
            if isinstance(report, Synthesized):
                pcm += report.frame.data
            if isinstance(report, SynthesisErrored):
                raise PortError(report.error)
    finally:
        await stream.aclose()
    return AudioFrame(bytes(pcm), synthesizer.format)


def _questions_are_understood(findings: Findings) -> Iterator[str]:
    said = [words_of(question) for question in QUESTIONS]
    heard = [words_of(turn.text) for turn in findings.account.turns.values()]
    if heard != said:
        understood = "; ".join(turn.text for turn in findings.account.turns.values())
        yield f"the user said {' / '.join(QUESTIONS)}, and understood was {understood!r}"


def _story_is_heard_while_it_is_written(findings: Findings) -> Iterator[str]:
    if not findings.replies or not findings.replies[0].heard_before_generated:
        yield "nothing of the story was heard before the model had written it whole"


def _story_is_interrupted(findings: Findings) -> Iterator[str]:
    if not findings.replies:
        yield "there was no story"
        return
    story = findings.replies[0]
    interrupted = [one.response_id for one in findings.account.interruptions]
    if interrupted != [story.told.response_id]:
        yield f"one interruption of the story was expected, and there were {len(interrupted)} interruptions"
    if story.delivery is not DeliveryStatus.INTERRUPTED:
        yield f"the delivery of the story is {story.delivery}, not interrupted"
    if story.rendered_ms < BARGE_IN_AFTER_MS:
        yield f"only {story.rendered_ms:.0f} ms of the story were heard, {BARGE_IN_AFTER_MS} were to be"
    if len(story.delivered) >= len(story.generated.strip()):
        yield "the story was not cut: all that was written was heard"
    if not story.generated.startswith(story.delivered):
        yield f"what was heard of the story ({story.delivered!r}) is not its beginning"


def _second_question_is_answered(findings: Findings) -> Iterator[str]:
    if len(findings.replies) != 2:
        yield f"there were {len(findings.replies)} replies, not 2"
        return
    answer = findings.replies[1]
    if answer.delivery is not DeliveryStatus.DELIVERED or not answer.is_whole:
        yield f"the answer was not heard to its end ({answer.delivery})"


def _first_sentence_was_heard(findings: Findings) -> Iterator[str]:
    if not findings.replies or "." not in findings.replies[0].delivered:
        yield "no whole sentence of the story was heard"


def _story_was_not_finished(findings: Findings) -> Iterator[str]:
    if not findings.replies or findings.replies[0].outcome is not Outcome.CANCELLED:
        yield "the model had written the whole story before it was interrupted"


def _answer_tells_the_time(findings: Findings) -> Iterator[str]:
    generated = findings.replies[-1].generated if findings.replies else ""
    if not _TELLS_THE_TIME.search(generated):
        yield f"asked for the time, the answer was {generated!r}"


EXPECTED = (
    Check("both questions were understood word by word", _questions_are_understood),
    Check("the story was heard before it was written to its end", _story_is_heard_while_it_is_written),
    Check("the story was interrupted where the user spoke, and cut there", _story_is_interrupted),
    Check("the second question was answered, and the answer heard to its end", _second_question_is_answered),
)
EXPECTED_OF_THE_COMPANION = (
    Check("the story was still being written when it was interrupted", _story_was_not_finished),
    Check("a whole sentence of the story was heard", _first_sentence_was_heard),
    Check("the answer tells the time", _answer_tells_the_time),
)
