"""What the commands of `voicechart tasks` do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import typer

from ..tools import StoredTask, TaskTable
from .history_run import opened
from .output import REFUSED, fail, print_json


def run_list(history: Path | None, config: Path | None, conversation: str | None, *, as_json: bool) -> None:
    """List the tasks."""
    with opened(history, config, as_json=as_json) as (store, _):
        stored = TaskTable(store).tasks(conversation)
        path = store.path
    if as_json:
        print_json({"history": str(path), "tasks": [_task_object(one) for one in stored]})
        return
    for one in stored:
        task = one.task
        state = f"{task.state} (to be cancelled)" if one.cancel_requested and task.state.is_open else str(task.state)
        when = f"{one.updated_at:%Y-%m-%d %H:%M}"
        typer.echo(f"{task.task_id:<6} {state:<12} {when} {task.request.name:<24} {one.conversation_id}")


def run_cancel(task: str, history: Path | None, config: Path | None, *, as_json: bool) -> None:
    """Ask for the end of one."""
    with opened(history, config, as_json=as_json) as (store, _):
        asked = TaskTable(store).request_cancellation(task)
        path = store.path
    if not asked:
        fail(f"{path} has no open task {task!r}: see voicechart tasks list", REFUSED, as_json=as_json)
    if as_json:
        print_json({"ok": True, "task": task})
        return
    typer.echo(f"{task} will be cancelled by the daemon that holds its conversation")


def run_prune(age: timedelta, history: Path | None, config: Path | None, *, dry_run: bool, as_json: bool) -> None:
    """Forget what ended before."""
    before = datetime.now(UTC) - age
    with opened(history, config, as_json=as_json) as (store, _):
        count = TaskTable(store).prune(before, dry_run=dry_run)
    if as_json:
        print_json({"ok": True, "dry_run": dry_run, "before": before.isoformat(timespec="seconds"), "tasks": count})
        return
    done = "would be forgotten" if dry_run else "were forgotten"
    typer.echo(f"{count} tasks {done}: everything that ended before {before:%Y-%m-%d %H:%M} UTC")


def _task_object(stored: StoredTask) -> dict[str, Any]:
    task = stored.task
    return {
        "task_id": task.task_id,
        "conversation_id": stored.conversation_id,
        "response_id": task.response_id,
        "call_id": task.request.call_id,
        "name": task.request.name,
        "arguments_json": task.request.arguments_json,
        "state": task.state.value,
        "starts": task.starts,
        "output": task.output,
        "told": task.told,
        "cancel_requested": stored.cancel_requested,
        "created_at": stored.created_at.isoformat(),
        "updated_at": stored.updated_at.isoformat(),
    }
