"""The conversations that are served: the foreground one, and conversations in writing that clients begin beside it."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

import anyio
from anyio.abc import TaskGroup

from ...engines import Session
from ...engines.port_calls import leaves_of, origin_of
from ...engines.public_events import Visibility
from ...statecharts.actions import Action, Release
from .hub import DEFAULT_SEES, Announce, EventHub, HubLimits, wake_all
from .runs import Runs
from .trace_feed import TraceFeed

logger = logging.getLogger(__name__)

IDENTITY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
Kind = Literal["voice", "text"]
NANOSECONDS_PER_SECOND = 1_000_000_000


class ConversationRefused(Exception):
    """A conversation cannot be begun. `code` is stable; the text says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class ConversationLimits:
    """`max_conversations`: in writing, beside the foreground one. `idle_s`: until one that nobody uses is closed."""

    max_conversations: int = 16
    idle_s: float = 1_800.0


@dataclass(frozen=True, slots=True)
class Watching:
    """How conversations are watched. `text_shown`: traces hold what was said."""

    sees: Iterable[Visibility] = DEFAULT_SEES
    limits: HubLimits = field(default_factory=HubLimits)
    announce: Announce = wake_all
    text_shown: bool = False


class Hosted:
    """One conversation that is served. Make it before its session runs, and `end` it afterwards."""

    def __init__(self, session: Session, kind: Kind, watching: Watching) -> None:
        context = session.conversation.context
        self.session = session
        self.kind: Kind = kind
        self.conversation_id = context.conversation_id
        self.hub = EventHub(
            self.conversation_id,
            session.public,
            session_epoch=context.session_epoch,
            sees=watching.sees,
            limits=watching.limits,
            announce=watching.announce,
        )
        self.trace = TraceFeed(
            session.conversation,
            context.session_epoch,
            text_shown=watching.text_shown,
            announce=watching.announce,
        )
        self.runs = Runs()
        session.public.listen(self.runs.note)
        self.requests = 0
        """Owners that are being answered."""
        session.watch(self._note)
        self.last_used_ns = time.monotonic_ns()

    @property
    def is_idle(self) -> bool:
        """Nobody watches, asks or is answered."""
        in_use = self.requests or self.hub.watchers or not self.session.conversation.context.reply_is_over
        return not in_use

    @property
    def is_over(self) -> bool:
        """Nothing can be said in it any more."""
        return self.session.closed is not None

    def touch(self) -> None:
        """Somebody used it."""
        self.last_used_ns = time.monotonic_ns()

    def _note(self, action: Action) -> None:
        if isinstance(action, Release):
            self.end()

    def end(self) -> None:
        """Its session has ended: whoever watches gets the rest, and then the end. Called at `Release` by itself."""
        self.hub.end()
        self.trace.end()


def new_session_epoch() -> int:
    """Greater than that of any earlier life of this server, so that a cursor of that life is known as one."""
    return time.time_ns() // 1_000_000


class Conversations:
    """Makes, finds and closes conversations. `open_text` makes the session of one in writing.

        async with anyio.create_task_group() as tasks:
            await tasks.start(conversations.run)

    `foreground` is run by whoever made it.
    """

    def __init__(
        self,
        open_text: Callable[[str], Session],
        *,
        watching: Watching | None = None,
        limits: ConversationLimits | None = None,
    ) -> None:
        self._open_text = open_text
        self._watching = watching or Watching()
        self._limits = limits or ConversationLimits()
        self._hosted: dict[str, Hosted] = {}
        self._tasks: TaskGroup | None = None
        self._changed = anyio.Event()
        self._closing = False
        self.foreground: Hosted | None = None

    def host(self, session: Session, kind: Kind) -> Hosted:
        """Serve a session that somebody else runs, as the one that is meant when none is named."""
        self.foreground = Hosted(session, kind, self._watching)
        return self.foreground

    def all(self) -> tuple[Hosted, ...]:
        """The foreground one first."""
        first = () if self.foreground is None else (self.foreground,)
        return (*first, *self._hosted.values())

    def find(self, conversation_id: str | None) -> Hosted | None:
        """The one of that name; the foreground one when none is named."""
        if self.foreground is not None and conversation_id in (None, self.foreground.conversation_id):
            return self.foreground
        return self._hosted.get(conversation_id or "")

    def begin(self, conversation_id: str) -> Hosted:
        """The conversation of that name, begun where there is none. Raises `ConversationRefused`."""
        found = self.find(conversation_id)
        if found is not None:
            return found
        if IDENTITY.fullmatch(conversation_id) is None:
            raise ConversationRefused(
                "bad_conversation_id", "a conversation_id has 1 to 64 letters, digits, dots, hyphens or underlines"
            )
        if self._closing or self._tasks is None:
            raise ConversationRefused("shutting_down", "the server is shutting down")
        self._make_room()
        hosted = Hosted(self._open_text(conversation_id), "text", self._watching)
        self._hosted[conversation_id] = hosted
        self._tasks.start_soon(self._run, hosted, name=f"conversation {conversation_id}")
        return hosted

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Hold conversations until `close`, then return when the last one has ended."""
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._expire)
            task_status.started()
            while not self._closing or self._hosted:
                self._changed = anyio.Event()
                await self._changed.wait()
            self._tasks.cancel_scope.cancel()

    def close(self, reason: str) -> None:
        """Close every conversation in writing, each through its chart; nothing new begins."""
        self._closing = True
        for hosted in self._hosted.values():
            hosted.session.close(reason)
        self._changed.set()

    async def _run(self, hosted: Hosted) -> None:
        try:
            await hosted.session.run()
        except Exception as error:
            # One broken conversation is no reason to end the others; the log has no message, which may hold words.
            logger.error("conversation %s failed: %s", hosted.conversation_id, origin_of(next(leaves_of(error))))
        finally:
            hosted.end()
            del self._hosted[hosted.conversation_id]
            self._changed.set()

    async def _expire(self) -> None:
        while True:
            await anyio.sleep(min(30.0, self._limits.idle_s))
            oldest = time.monotonic_ns() - int(self._limits.idle_s * NANOSECONDS_PER_SECOND)
            for hosted in self._hosted.values():
                if hosted.is_idle and hosted.last_used_ns <= oldest:
                    hosted.session.close("idle")

    def _make_room(self) -> None:
        """A new one takes the place of the one that has been idle longest."""
        open_ones = [hosted for hosted in self._hosted.values() if not hosted.is_over]
        if len(open_ones) < self._limits.max_conversations and len(self._hosted) <= 2 * self._limits.max_conversations:
            return
        idle = [hosted for hosted in open_ones if hosted.is_idle]
        if not idle:
            raise ConversationRefused(
                "too_many_conversations",
                f"{len(self._hosted)} conversations are in use; go on in one of them, or come back later",
            )
        min(idle, key=lambda hosted: hosted.last_used_ns).session.close("idle")
