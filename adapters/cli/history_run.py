"""What the `voicechart history` commands do."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import typer

from ..configuration import ConfigurationRefused, load_configuration
from ..history import ConversationSummary, HistoryError, HistoryStore, history_lines, prune
from .files import write_whole
from .history_words import conversation_heading, conversation_table, record_table
from .output import FAILED, REFUSED, PatientConsole, fail, print_json

_DEFAULT_CONFIG = Path("voicechart.toml")
_NOT_AS_ASKED = frozenset({"history_missing", "history_unreachable", "history_damaged", "history_newer"})
_PRIVATE = 0o600


def run_show(name: str | None, history: Path | None, config: Path | None, last: int | None, *, as_json: bool) -> None:
    """Show one conversation."""
    with opened(history, config, as_json=as_json) as (store, configured):
        summary = _chosen(store, name, configured, as_json=as_json)
        stored = store.stored(summary.conversation_id, last)
    if as_json:
        head, *records = (line.model_dump(mode="json") for line in history_lines(summary, stored))
        print_json({**head, "records": records})
        return
    console = PatientConsole(highlight=False)
    console.print(conversation_heading(summary))
    console.print(record_table(stored))


def run_list(history: Path | None, config: Path | None, *, as_json: bool) -> None:
    """List the conversations."""
    with opened(history, config, as_json=as_json) as (store, _):
        summaries = store.conversations()
        path = store.path
    if as_json:
        print_json({"history": str(path), "conversations": [_summary_object(summary) for summary in summaries]})
        return
    PatientConsole(highlight=False).print(conversation_table(summaries))


def run_export(name: str | None, history: Path | None, config: Path | None, output: Path | None) -> None:
    """Write JSON Lines."""
    with opened(history, config) as (store, _):
        chosen = store.conversations() if name is None else (_chosen(store, name, None),)
        lines = [
            line.model_dump_json()
            for summary in chosen
            for line in history_lines(summary, store.stored(summary.conversation_id))
        ]
    if output is None:
        for line in lines:
            typer.echo(line)
        return
    try:
        write_whole(output, "".join(f"{line}\n" for line in lines).encode(), mode=_PRIVATE)
    except OSError as error:
        fail(f"{output} cannot be written: {error.strerror}", FAILED)


def run_prune(age: timedelta, history: Path | None, config: Path | None, *, dry_run: bool, as_json: bool) -> None:
    """Forget what is older than `age`."""
    before = datetime.now(UTC) - age
    with opened(history, config, as_json=as_json) as (store, _):
        pruned = prune(store, before, dry_run=dry_run)
    if as_json:
        print_json(
            {
                "ok": True,
                "dry_run": dry_run,
                "before": before.isoformat(timespec="seconds"),
                "conversations": pruned.conversations,
                "turns": pruned.turns,
                "replies": pruned.replies,
            }
        )
        return
    done = "would be forgotten" if dry_run else "were forgotten"
    typer.echo(
        f"{pruned.turns} turns and {pruned.replies} replies of {pruned.conversations} conversations {done}: "
        f"everything before {before:%Y-%m-%d %H:%M} UTC"
    )


@contextmanager
def opened(
    history: Path | None, config: Path | None, *, as_json: bool = False
) -> Generator[tuple[HistoryStore, str | None]]:
    """The history file and the configuration's conversation; ends the command when there is none, or it refuses."""
    path, configured = _place(history, config, as_json=as_json)
    try:
        with HistoryStore(path, create=False) as store:
            yield store, configured
    except HistoryError as refused:
        error = refused.error
        fail(error.message, REFUSED if error.code in _NOT_AS_ASKED else FAILED, as_json=as_json)


def _place(history: Path | None, config: Path | None, *, as_json: bool) -> tuple[Path, str | None]:
    if history is not None:
        if config is not None:
            fail("--history and --config both name the file: leave one out", REFUSED, as_json=as_json)
        return history, None
    if config is None and not _DEFAULT_CONFIG.exists():
        fail("name the file with --history FILE, or a configuration with --config FILE", REFUSED, as_json=as_json)
    place = config or _DEFAULT_CONFIG
    try:
        configuration = load_configuration(place)
    except ConfigurationRefused as refused:
        fail(f"{place}: {refused}", REFUSED, as_json=as_json)
    settings = configuration.history
    if settings is None:
        message = f"{place} keeps no history: add a table [history] with a path, or name a file with --history"
        fail(message, REFUSED, as_json=as_json)
    return settings.path, settings.conversation or configuration.conversation_id


def _chosen(
    store: HistoryStore, name: str | None, configured: str | None, *, as_json: bool = False
) -> ConversationSummary:
    summaries = {summary.conversation_id: summary for summary in store.conversations()}
    if not summaries:
        fail(f"{store.path} holds no conversation yet", REFUSED, as_json=as_json)
    if name is not None and name not in summaries:
        message = f"{store.path} holds no conversation {name!r}: choose one of {', '.join(summaries)}"
        fail(message, REFUSED, as_json=as_json)
    if name is None:
        name = configured if configured in summaries else next(iter(summaries))
    return summaries[name]


def _summary_object(summary: ConversationSummary) -> dict[str, Any]:
    last = summary.last_stored_at
    return {
        "conversation_id": summary.conversation_id,
        "created_at": summary.created_at.isoformat(),
        "last_stored_at": None if last is None else last.isoformat(),
        "turns": summary.turns,
        "replies": summary.replies,
    }
