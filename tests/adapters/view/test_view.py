"""What people see is what the chart decided, in its order."""

from __future__ import annotations

import io
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import pytest
from rich.console import Console

from voicechart.adapters.view import LiveView, TimelineView, Watching
from voicechart.adapters.view.moments import Moment, moment_of, shortened
from voicechart.adapters.view.picture import Picture, regions
from voicechart.adapters.view.views import draw, timeline_line
from voicechart.engines import Session
from voicechart.engines.engine import Desk
from voicechart.engines.public_events import PublicEvent, SpeechTextCommitted, TextAppended, TextFinished
from voicechart.statecharts import Conversation, InterruptionPolicy, Policies, SeededIds
from voicechart.statecharts import facts as said
from voicechart.statecharts import published as told
from voicechart.statecharts.actions import Action
from voicechart.statecharts.capabilities import Capabilities, SpeakerCapabilities
from voicechart.statecharts.chart import Step
from voicechart.statecharts.context import Context
from voicechart.statecharts.errors import ErrorScope, ScopedError
from voicechart.statecharts.values import DeliveryStatus, InterruptionSource, PositionSource, TurnAuthority

LEAVES = ("ready", "hypothesis", "streaming", "playing")


@dataclass
class Scene:
    """A conversation whose macrosteps are shown in a picture."""

    picture: Picture = field(default_factory=Picture)
    moments: list[Moment] = field(default_factory=list[Moment])
    at: int = 0

    def __post_init__(self) -> None:
        policy = InterruptionPolicy(sources=frozenset(InterruptionSource), full_duplex=True)
        self.conversation = Conversation("scene", policies=Policies(interruption=policy), ids=SeededIds("scene"))
        self.conversation.observe(self._see)

    def _see(self, step: Step[Context]) -> None:
        self.moments += self.picture.take_step(step)

    def tick(self) -> int:
        self.at += 100_000_000
        return self.at

    def event(self, payload: told.Payload) -> None:
        """A public event of the media path about the present reply."""
        reply = self.conversation.context.response
        response_id = reply.response_id if reply is not None else None
        self.moments += self.picture.take_event(
            PublicEvent("e", 1, 1, 1, "scene", self.tick(), payload, response_id=response_id)
        )

    def to_a_heard_reply(self) -> int:
        """Ask something and let 8,000 samples of the reply be heard; its epoch."""
        handle = self.conversation.handle
        handle(said.OpenRequested(at=self.tick()))
        capabilities = Capabilities(speaker=SpeakerCapabilities(pause=True, measured_position=True))
        handle(said.ConnectionReady(at=self.tick(), capabilities=capabilities))
        handle(said.SpeechStarted(at=self.tick()))
        turn = self.conversation.context.turn
        assert turn is not None
        recognition = turn.recognitions[-1]
        for revision, text in enumerate(("tell", "tell me"), 1):
            handle(
                said.TranscriptUpdated(
                    at=self.tick(), recognition_id=recognition, segment_id="a", revision=revision, text=text
                )
            )
        handle(
            said.SegmentFinalized(
                at=self.tick(), recognition_id=recognition, segment_id="a", revision=3, text="Tell me more."
            )
        )
        handle(said.TurnEnded(at=self.tick(), authority=TurnAuthority.VAD))
        handle(said.RecognitionClosed(at=self.tick(), recognition_id=recognition))
        reply = self.conversation.context.response
        assert reply is not None
        epoch = reply.output_epoch
        handle(said.OutputStarted(at=self.tick(), attempt_id=reply.attempt_id))
        self.event(TextAppended("One. Two. Three."))
        for index, text in enumerate(("One.", "Two.", "Three.")):
            self.event(SpeechTextCommitted(index, text))
        handle(said.AudioStarted(at=self.tick(), output_epoch=epoch, sample_rate_hz=8_000))
        for index in range(2):
            handle(
                said.SpeechUnitSynthesized(
                    at=self.tick(),
                    output_epoch=epoch,
                    unit_index=index,
                    start_sample=index * 8_000,
                    end_sample=(index + 1) * 8_000,
                )
            )
        handle(said.PrebufferFilled(at=self.tick(), output_epoch=epoch, stream_id=1, played_samples=40))
        handle(said.PlaybackProgressed(at=self.tick(), output_epoch=epoch, stream_id=1, played_samples=8_000))
        return epoch

    def interrupt(self) -> None:
        self.conversation.handle(said.ButtonPressed(at=self.tick()))


def lines(scene: Scene) -> list[str]:
    return [f"{moment.who}: {moment.text}" for moment in scene.moments]


def test_the_picture_has_the_four_regions_of_the_chart_in_its_order() -> None:
    assert [region.name.lower() for region in regions()] == ["connection", "input turn", "generation", "playback"]
    assert ("playing", "playing") in regions()[3].states
    assert ("generation_idle", "idle") in regions()[2].states


def test_a_hypothesis_is_shown_and_revised_before_it_is_final() -> None:
    scene = Scene()
    scene.to_a_heard_reply()
    shown = lines(scene)
    first, second = "user: … “tell” (hypothesis 1)", "user: … “tell me” (hypothesis 2)"
    assert shown.index(first) < shown.index(second) < shown.index("user: said “Tell me more.”")
    assert (scene.picture.caption, scene.picture.caption_state) == ("Tell me more.", "committed")


def test_what_is_heard_is_told_apart_from_what_sounds_and_what_waits() -> None:
    scene = Scene()
    scene.to_a_heard_reply()
    assert scene.picture.generated == "One. Two. Three."
    assert scene.picture.speech() == ("One.", "Two.", "Three.")


def test_nothing_sounds_before_the_first_sample() -> None:
    picture = Picture(response_id="r")
    picture.take_event(PublicEvent("e", 1, 1, 1, "c", 0, SpeechTextCommitted(0, "One."), response_id="r"))
    assert picture.speech() == ("", "", "One.")


def test_an_interruption_is_marked_and_what_was_not_heard_stays_unheard() -> None:
    scene = Scene()
    epoch = scene.to_a_heard_reply()
    scene.interrupt()
    scene.conversation.handle(
        said.PlaybackStopped(at=scene.tick(), output_epoch=epoch, stream_id=1, played_samples=12_000)
    )
    (marked,) = [moment for moment in scene.moments if moment.is_marked]
    assert "INTERRUPTS" in marked.text
    assert scene.picture.speech() == ("One.", "", "Two. Three.")
    assert "interrupted" in drawn(scene.picture)


def test_the_next_reply_begins_with_an_empty_picture() -> None:
    scene = Scene()
    scene.to_a_heard_reply()
    scene.interrupt()
    reply = scene.conversation.context.response
    assert reply is not None
    scene.conversation.handle(said.CancelAcknowledged(at=scene.tick(), attempt_id=reply.attempt_id))
    scene.conversation.handle(said.TextSubmitted(at=scene.tick(), text="And now?"))
    assert scene.picture.generated == ""
    assert scene.picture.speech() == ("", "", "")
    assert not scene.picture.interrupted


def test_text_of_a_former_reply_is_not_taken_for_the_present_one() -> None:
    picture = Picture(response_id="new")
    picture.take_event(PublicEvent("e", 1, 1, 1, "c", 0, TextAppended("old words"), response_id="old"))
    assert picture.generated == ""


def test_the_final_text_replaces_its_deltas() -> None:
    picture = Picture(response_id="r")
    for payload in (TextAppended("Helo"), TextFinished("Hello.")):
        picture.take_event(PublicEvent("e", 1, 1, 1, "c", 0, payload, response_id="r"))
    assert picture.generated == "Hello."


def test_the_first_sample_says_whether_the_model_is_still_writing() -> None:
    writing = moment_of(told.PlaybackBegan(), 0, LEAVES, is_writing=True)
    written = moment_of(told.PlaybackBegan(), 0, LEAVES, is_writing=False)
    assert writing is not None
    assert written is not None
    assert "still writing" in writing.text
    assert "still writing" not in written.text


@pytest.mark.parametrize(
    ("payload", "part", "marked"),
    [
        (told.SessionReady(("voice: slow",)), "voice: slow", False),
        (told.SessionReconnecting(2, "audio_service_lost"), "attempt 2", True),
        (told.TurnDiscarded("no_words"), "no_words", False),
        (told.DeliveryRecorded(DeliveryStatus.INTERRUPTED, 1, 9, PositionSource.MEASURED), "1 unit of", False),
        (told.DeliveryRecorded(DeliveryStatus.DELIVERED, 2, 9, PositionSource.MEASURED), "2 units of", False),
        (told.SessionClosed("finished", None), "closed (finished)", False),
    ],
)
def test_a_moment_says_what_its_event_says(payload: told.Payload, part: str, marked: bool) -> None:
    moment = moment_of(payload, 0, LEAVES, is_writing=False)
    assert moment is not None
    assert part in moment.text
    assert moment.is_marked is marked


def test_an_error_is_marked_and_told_whole() -> None:
    error = ScopedError("speaker_lost", "playback", ErrorScope.SESSION, "plug it in")
    moment = moment_of(told.StreamError(error), 0, LEAVES, is_writing=False)
    assert moment is not None
    assert moment.is_marked
    assert "playback/speaker_lost: plug it in" in moment.text


def test_progress_is_no_moment() -> None:
    assert moment_of(told.PlaybackMoved(1, 1, 1, PositionSource.MEASURED), 0, LEAVES, is_writing=False) is None


@pytest.mark.parametrize(("text", "short"), [("a  b\nc", "a b c"), ("x" * 10, "x" * 10), ("x" * 11, "x" * 9 + "…")])
def test_a_text_is_shortened_to_one_line(text: str, short: str) -> None:
    assert shortened(text, 10) == short


def test_a_line_of_the_timeline_has_seconds_states_who_and_what() -> None:
    line = timeline_line(Moment(3_250_000_000, LEAVES, "user", "said “Hi.”"), 1_000_000_000).plain
    assert line.split() == ["2.25", "ready", "hypothesis", "streaming", "playing", "user", "said", "“Hi.”"]


def test_every_state_is_drawn_and_the_active_ones_are_marked() -> None:
    scene = Scene()
    scene.to_a_heard_reply()
    picture = drawn(scene.picture)
    for name in ("● ready", "● committed", "● streaming", "● playing", "drained", "discarded"):
        assert name in picture
    assert "● drained" not in picture


def drawn(picture: Picture) -> str:
    output = io.StringIO()
    Console(file=output, width=120).print(draw(picture))
    return output.getvalue()


class SilentEngine:
    """Carries nothing out."""

    def attach(self, desk: Desk) -> None:
        self.desk = desk

    def carry_out(self, action: Action) -> None:
        """Nothing to do."""

    async def aclose(self) -> None:
        """Nothing to release."""


async def watched(view: TimelineView | LiveView) -> None:
    session = Session(Conversation("watched", ids=SeededIds("watched")), SilentEngine())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Watching(view).watch, session)
        await anyio.lowlevel.checkpoint()
        session.close("enough")
        await session.run()


@pytest.mark.anyio
async def test_a_session_is_shown_to_its_very_end_in_lines() -> None:
    output = io.StringIO()
    await watched(TimelineView(Console(file=output, width=200)))
    assert output.getvalue().rstrip().endswith("closed (enough)")


@pytest.mark.anyio
async def test_a_session_is_shown_live_on_a_terminal_and_its_lines_stay() -> None:
    output = io.StringIO()
    await watched(LiveView(Console(file=output, width=120, height=40, force_terminal=True)))
    shown = output.getvalue()
    assert "● " in shown
    assert "closed (enough)" in shown
