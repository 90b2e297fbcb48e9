"""What every message of a realtime model becomes: each fixture, played by a scripted server to the adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from pydantic import JsonValue

from voicechart.adapters.providers.realtime import gemini_live, openai_realtime, qwen_omni
from voicechart.adapters.testing import ScriptedSocketServer, WireFixture, load_fixtures
from voicechart.audio.formats import AudioFormat, AudioFrame
from voicechart.engines.realtime import RealtimeModel, RealtimeRequest, RealtimeSession, ToolOutput
from voicechart.engines.realtime.reports import AnswerAudio, AnswerUsage, RealtimeReport, SessionEnded
from voicechart.engines.reports import PortError
from voicechart.statecharts.errors import ScopedError

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret"
DEADLINE_S = 5.0

MODELS: Mapping[str, Callable[[str], RealtimeModel]] = {
    "openai-realtime": lambda url: openai_realtime.make_model(
        openai_realtime.OpenAIRealtimeSettings(base_url=url), KEY
    ),
    "qwen-omni": lambda url: qwen_omni.make_model(qwen_omni.QwenOmniSettings(base_url=url), KEY),
    "gemini-live": lambda url: gemini_live.make_model(gemini_live.GeminiLiveSettings(base_url=url), KEY),
}
"""By the protocol of the fixture. A model that comes later adds itself here."""

FIXTURES = {
    name: fixture
    for name, fixture in load_fixtures(Path(__file__).parent / "fixtures").items()
    if fixture.protocol in MODELS
}


@pytest.mark.parametrize("fixture", [pytest.param(fixture, id=name) for name, fixture in FIXTURES.items()])
async def test_a_fixture_becomes_the_reports_that_it_names(fixture: WireFixture) -> None:
    async with ScriptedSocketServer(fixture.script()).running() as base_url:
        model = MODELS[fixture.protocol](base_url)
        reports = await Played(model, fixture).run()
        await model.aclose()
    seen = [shown(report) for report in reports]
    assert [restricted(one, expected) for one, expected in zip(seen, fixture.expected, strict=False)] == list(
        fixture.expected
    ), seen
    assert len(seen) == len(fixture.expected), seen
    assert KEY not in str(reports)


def test_there_are_fixtures_for_every_realtime_model() -> None:
    assert {fixture.protocol for fixture in FIXTURES.values()} == {*MODELS}


@dataclass
class Played:
    """A session that is asked what the fixture says, and everything that comes back."""

    model: RealtimeModel
    fixture: WireFixture
    reports: list[RealtimeReport | PortError] = field(default_factory=list[RealtimeReport | PortError])

    def __post_init__(self) -> None:
        self._changed = anyio.Event()

    async def run(self) -> list[RealtimeReport | PortError]:
        """Closed by this side when everything that the fixture names has come."""
        acts = list(self.fixture.acts)
        provider_turns = acts[:1] == ["provider turns"]
        # What does not come in time is missed by the comparison, which shows what came.
        with anyio.move_on_after(DEADLINE_S):
            try:
                session = await self.model.open(RealtimeRequest(provider_turns=provider_turns))
            except PortError as refused:
                return [refused]
            async with anyio.create_task_group() as group:
                group.start_soon(self._read, session)
                for act in acts[provider_turns:]:
                    try:
                        await self._act(session, act)
                    except PortError as refused:
                        self._note(refused)
                await self._until(lambda: len(self.reports) >= len(self.fixture.expected))
                await session.aclose()
        closed_by_us = SessionEnded()
        return [report for report in self.reports if report != closed_by_us]

    async def _read(self, session: RealtimeSession) -> None:
        async for report in session.reports():
            self._note(report)

    def _note(self, report: RealtimeReport | PortError) -> None:
        self.reports.append(report)
        self._changed.set()
        self._changed = anyio.Event()

    async def _until(self, is_so: Callable[[], bool]) -> None:
        while not (is_so() or any(isinstance(report, SessionEnded) for report in self.reports)):
            await self._changed.wait()

    async def _act(self, session: RealtimeSession, act: str) -> None:
        verb, _, what = act.partition(" ")
        match verb:
            case "speak":
                await session.begin_utterance(what)
                await self._write(session)
                await session.commit_utterance(what)
            case "begin":
                await session.begin_utterance(what)
            case "write":
                await self._write(session)
            case "discard":
                await session.discard_utterance(what)
            case "text":
                await session.submit_text(what)
            case "output":
                call_id, _, output = what.partition(" ")
                await session.submit_outputs((ToolOutput(call_id, "weather", output),))
            case "respond":
                await session.respond(what)
            case "cancel":
                session.cancel(what, "interrupted")
            case "truncate":
                item_id, _, played_ms = what.partition(" ")
                await session.truncate(item_id, int(played_ms))
            case "until" if what.isdigit():
                await self._until(lambda: len(self.reports) >= int(what))
            case "until":
                await self._until(lambda: any(type(report).__name__ == what for report in self.reports))
            case _:
                raise ValueError(f"no such act: {act}")

    async def _write(self, session: RealtimeSession) -> None:
        for frame in silence(self.model.input_format):
            await session.write(frame)


def silence(format: AudioFormat, milliseconds: int = 200) -> list[AudioFrame]:
    step = format.samples_for_ms(20)
    return [AudioFrame(bytes(format.bytes_for(step)), format, step * number) for number in range(milliseconds // 20)]


def shown(report: RealtimeReport | PortError) -> dict[str, JsonValue]:
    """A report as fixtures write it."""
    name = "PortError" if isinstance(report, PortError) else type(report).__name__
    kind: dict[str, JsonValue] = {"report": name}
    if isinstance(report, PortError):
        return kind | of_error(report.error)
    if isinstance(report, AnswerAudio):
        frame: dict[str, JsonValue] = {"samples": report.frame.samples, "start_sample": report.frame.start_sample}
        return kind | frame | {"answer_id": report.answer_id, "item_id": report.item_id}
    if isinstance(report, AnswerUsage):
        return kind | {"input_tokens": report.usage.input_tokens, "output_tokens": report.usage.output_tokens}
    error = getattr(report, "error", None)
    fields = {name: listed(getattr(report, name)) for name in report.__slots__ if name != "error"}
    return kind | fields | (of_error(error) if isinstance(error, ScopedError) else {})


def listed(value: JsonValue | tuple[str, ...]) -> JsonValue:
    """JSON knows no tuples."""
    return [*value] if isinstance(value, tuple) else value


def of_error(error: ScopedError) -> dict[str, JsonValue]:
    return {
        "code": error.code,
        "scope": error.scope.value,
        "retryable": error.retryable,
        "retry_after_ms": error.retry_after_ms,
        "partial_output": error.partial_output,
    }


def restricted(seen: Mapping[str, JsonValue], expected: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """What was seen, as far as the fixture says anything about it."""
    return {name: value for name, value in seen.items() if name in expected}
