"""What a terminal shows of a conversation's events: one line for what people should see, with what was heard of it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from ..view.moments import quoted
from ..web.folding import Json, empty_state, fold

STYLES = {"user": "cyan", "assistant": "magenta", "heard": "green", "session": "dim"}
MARK = "bold red"


class Lines:
    """Folds the events and says what is new."""

    def __init__(self) -> None:
        self._state = empty_state()

    def take(self, event: Json) -> Iterator[Text]:
        """The lines that an event is worth; none for most."""
        self._state = fold(self._state, event)
        kind, payload = event["type"], event["payload"]
        match kind:
            case "snapshot":
                yield from self._told_before()
            case "session.ready":
                yield _line("session", "; ".join(("ready", *payload["degradations"])))
            case "session.reconnecting":
                yield _line("session", f"reconnecting ({payload['reason']})", MARK)
            case "session.closed":
                yield _line("session", f"closed ({payload['reason']})")
            case "stream.error":
                yield _line("session", f"ERROR {payload['error']['message']}", MARK)
            case "transcript.updated":
                yield _line("user", f"… {quoted(payload['text'])}", "dim")
            case "turn.committed":
                yield _line("user", payload["text"])
            case "turn.discarded" | "turn.dropped":
                yield _line("user", f"is not answered ({payload['reason']})", "dim")
            case "tool.started":
                yield _line("assistant", f"uses {payload['name']}", "dim")
            case "interruption.accepted":
                yield _line("user", f"INTERRUPTS by {payload['source']}", MARK)
            case "delivery.recorded":
                yield from self._delivered(event)
            case "resync_required":
                yield _line("session", payload["reason"], MARK)
            case _:
                pass

    def _told_before(self) -> Iterator[Text]:
        """A snapshot: what there was before, and how it stands."""
        for entry in self._state["entries"]:
            if entry["kind"] == "user":
                yield _line("user", entry["text"])
            else:
                yield from _reply(entry)
        yield _line("session", self._state["session"]["state"])

    def _delivered(self, event: Json) -> Iterator[Text]:
        for entry in self._state["entries"]:
            if entry["kind"] == "assistant" and entry["response_id"] == event.get("response_id"):
                yield from _reply(entry)


def _reply(entry: Json) -> Iterator[Text]:
    """What was written; and, where that is another thing, what was heard of it."""
    delivery = entry["delivery"]
    if delivery is None or delivery["status"] in ("delivered", "text_only"):
        yield _line("assistant", entry["text"] or "…")
        return
    written = Text(f"{'assistant':<10}")
    end = heard_end(entry)
    written.append(entry["text"][:end], STYLES["heard"])
    written.append(" ✂ ", MARK)
    written.append(entry["text"][end:].lstrip(), "dim strike")
    written.append(f"  [{delivery['status']}]", "dim")
    yield written


def heard_end(entry: Json) -> int:
    """How many characters of the written text lie in units that were heard whole."""
    heard = entry["units"][: entry["delivery"]["units"]]
    return max((unit["source_end"] or 0 for unit in heard), default=0)


def _line(who: str, text: str, style: str | None = None) -> Text:
    return Text.assemble((f"{who:<10}", "dim"), (" ".join(text.split()), style or STYLES[who]))
