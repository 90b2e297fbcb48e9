"""A conversation with recordings over the real audio path, and everything that proves what happened in it.

Theory of operation. The audio service runs in this process with a virtual microphone and a virtual speaker, and is
reached over a Unix socket in a private folder, as on a board. The speaker plays in real time, in the synthesiser's own
format, so that its recording can be compared with the speech sample by sample. Nothing here looks into the session to
find out what happened: that is computed afterwards, from the trace, the render log and the recording.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from ...audio.formats import AudioFrame
from ...audio.wav_reader import read_wav
from ...engines import Closed, MemoryHistory, Session
from ...engines.reports import PortError
from ...engines.turn_metrics import MetricsAggregate
from ...statecharts import Conversation, SeededIds
from ...statecharts.errors import ErrorScope, ScopedError
from ..board import DeviceLost, RenderedSpan, SocketRefused, WavMicrophone, WavSpeaker, serve_audio
from ..board.background import Readiness
from ..composition import BoardDevice
from ..history import HistoryStore, SqliteHistory, conversation_after
from ..stopping import Stop, stop_on_signals
from ..tracing import TraceLimits, TraceRecorder, read_trace
from ..watched_session import Watch, run_watched
from .cast import Players
from .evidence import Evidence
from .virtual_user import VirtualUser

CONVERSATION = "rehearsal"
NOISE_RMS = 3.0
"""A quiet room is not digital silence."""
MAX_RECORDING_MS = 3_600_000


@dataclass(frozen=True)
class Plan:
    """What the user says, and when; where everything is left."""

    recordings: tuple[AudioFrame, ...]
    out: Path
    barge_in_after_ms: float | None = None
    """Speak the next recording when so much of a reply has been heard; None: when it is over."""
    deadline_s: float = 600.0
    """A conversation that is not over by then is given up."""
    history: Path | None = None
    """Go on with the conversation in this history file, and leave this one there; None: it is forgotten."""

    @property
    def heard_path(self) -> Path:
        """Exactly the rendered samples."""
        return self.out / "heard.wav"

    @property
    def trace_path(self) -> Path:
        """Every macrostep, with what was said."""
        return self.out / "trace.jsonl"


@dataclass(frozen=True)
class Outcome:
    """How it ended, and what it left. `evidence` None: it was stopped before there was any."""

    stop: Stop
    closed: Closed | None
    evidence: Evidence | None
    metrics: MetricsAggregate
    """What the turns cost."""


class RehearsalFailed(Exception):
    """It could not be held: a file cannot be written, the socket cannot be used. The text says what to do."""

    def __init__(self, message: str, error: ScopedError | None = None) -> None:
        super().__init__(message)
        self.error = error
        """The device's own error, where it was one."""


async def rehearse(plan: Plan, cast: Players, *, watch: Watch | None = None) -> Outcome:
    """Hold the conversation. The first SIGINT or SIGTERM closes it through the chart, the second cancels it.

    `watch` is started with the session and ends by itself after it. Raises `RehearsalFailed`, and `PortError` when a
    part cannot be loaded.
    """
    try:
        plan.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RehearsalFailed(f"cannot write to {plan.out}: {error.strerror}; choose another --out") from error
    return await _Rehearsal(plan, cast, watch).run()


class _Rehearsal:
    def __init__(self, plan: Plan, cast: Players, watch: Watch | None) -> None:
        self._plan = plan
        self._cast = cast
        self._watch = watch
        self._spans: list[RenderedSpan] = []
        self._session: Session | None = None
        self._metrics = MetricsAggregate()
        self._preparing = anyio.CancelScope()
        self._lost: ScopedError | None = None
        self._asked = False

    async def run(self) -> Outcome:
        evidence: Evidence | None = None
        closed: Closed | None = None
        async with stop_on_signals(self._ask) as stop:
            with self._preparing:
                # Before anything else: the speaker is made in the format of the speech.
                await self._cast.prepare()
            if stop.signal is None:
                with TemporaryDirectory(prefix="voicechart-") as folder, self._history() as history:
                    closed, evidence = await self._hold(Path(folder) / "audio.sock", history)
        return Outcome(stop, closed, evidence, self._metrics)

    def _ask(self) -> None:
        self._asked = True
        self._preparing.cancel()
        if self._session is not None:
            self._session.close("stopped")

    @contextmanager
    def _history(self) -> Generator[SqliteHistory | None]:
        if self._plan.history is None:
            yield None
            return
        with HistoryStore(self._plan.history) as store:
            yield SqliteHistory(store, CONVERSATION)

    async def _hold(self, socket: Path, history: SqliteHistory | None) -> tuple[Closed, Evidence]:
        plan, cast = self._plan, self._cast
        kept = history or MemoryHistory()
        ensemble = cast.play(BoardDevice(socket), kept)
        ids = SeededIds(secrets.token_hex(8))
        if history is None:
            conversation = Conversation(CONVERSATION, policies=cast.policies, ids=ids)
        else:
            conversation = conversation_after(history.start, CONVERSATION, policies=cast.policies, ids=ids)
        began_behind = conversation.context.positions
        session = Session(conversation, ensemble.engine)
        if ensemble.note is not None:
            session.watch(ensemble.note)
        if cast.attach is not None:
            cast.attach(session)
        self._metrics = session.metrics
        recorder = TraceRecorder(
            conversation, plan.trace_path, limits=TraceLimits(max_file_bytes=1 << 30), text_shown=True
        )
        closed = await self._run_session(session, socket, recorder)
        if recorder.failure is not None:
            raise RehearsalFailed(str(recorder.failure))
        evidence = Evidence(
            trace=read_trace(plan.trace_path),
            spans=tuple(self._spans),
            heard=read_wav(plan.heard_path, max_ms=MAX_RECORDING_MS),
            voiced=tuple(ensemble.voiced()),
            records=tuple(record for record in kept.records() if record.position > began_behind),
        )
        return closed, evidence

    async def _run_session(self, session: Session, socket: Path, recorder: TraceRecorder) -> Closed:
        microphone = WavMicrophone(noise_rms=NOISE_RMS)
        user = VirtualUser(session, microphone, self._plan.recordings, barge_in_after_ms=self._plan.barge_in_after_ms)
        closed: Closed | None = None
        refused: PortError | None = None
        ready = Readiness()
        recorder.start()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._serve, socket, microphone, ready)
                await ready.wait()
                if self._lost is None:
                    tasks.start_soon(recorder.run)
                    tasks.start_soon(user.run)
                    tasks.start_soon(self._give_up, session)
                    self._session = session
                    if self._asked:
                        session.close("stopped")
                    try:
                        closed = await run_watched(session, self._watch)
                    except PortError as failure:
                        refused = failure
                    self._session = None
                tasks.cancel_scope.cancel()
        finally:
            recorder.stop()
        if refused is not None:
            raise refused
        if closed is None or (self._lost is not None and closed.error is None):
            # A recording whose last samples could not be written is no success either.
            raise RehearsalFailed(str(self._lost), self._lost)
        return closed

    async def _serve(self, socket: Path, microphone: WavMicrophone, ready: Readiness) -> None:
        """The audio service; when a device of it fails, the session is closed with that error."""
        speaker = WavSpeaker(self._plan.heard_path, self._cast.output_format)
        try:
            await serve_audio(socket, microphone, speaker, log_rendered=self._spans.append, task_status=ready)
        except (DeviceLost, SocketRefused) as failure:
            code = failure.code if isinstance(failure, DeviceLost) else "socket_refused"
            self._lost = ScopedError(code, "playback", ErrorScope.SESSION, str(failure))
            ready.started()
            if self._session is not None:
                self._session.close(code, self._lost)

    async def _give_up(self, session: Session) -> None:
        await anyio.sleep(self._plan.deadline_s)
        message = f"the conversation was not over after {self._plan.deadline_s:.0f} s; the trace says what for"
        session.close("overran", ScopedError("rehearsal_overran", "connection", ErrorScope.SESSION, message))
