"""`voicechart history`: what people see, what programs read, and what is refused."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from voicechart.adapters.cli import app
from voicechart.adapters.cli.history import parse_age
from voicechart.adapters.cli.history_words import call_text, printable, reply_text
from voicechart.adapters.history import HistoryStore, SqliteHistory
from voicechart.engines.history import Cut, Delivery, Reply, ToolExchange, UserTurn
from voicechart.engines.ports import ToolRequest
from voicechart.statecharts.values import DeliveryStatus, Outcome, PositionSource, ToolStatus, TurnAuthority

TURN = UserTurn("turn-1", 1, "tell me a story", TurnAuthority.VAD)
CALL = ToolExchange(ToolRequest("call-1", "clock", "{}"), ToolStatus.COMPLETED, "noon")
CUT = Delivery(DeliveryStatus.INTERRUPTED, "Once upon a time.", 1, 4_000, PositionSource.MEASURED, 1.0, 7)
REPLY = Reply(
    "response-1", "run-1", 2, "Once upon a time. There was a clock.", Outcome.CANCELLED, "interrupted", CUT, (CALL,)
)


def run(*arguments: object, cwd: Path | None = None) -> Result:
    runner = CliRunner()
    with pytest.MonkeyPatch.context() as patch:
        if cwd is not None:
            patch.chdir(cwd)
        return runner.invoke(app, ["history", *map(str, arguments)], env={"COLUMNS": "140", "TERM": "dumb"})


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Two conversations; something was said in the kitchen last."""
    path = tmp_path / "history.db"
    with HistoryStore(path) as store:
        garden = SqliteHistory(store, "garden")
        garden.store_turn(replace(TURN, text="water the roses"))
        with store.transaction() as connection:
            connection.execute("UPDATE turns SET stored_at = '2025-01-01T00:00:00.000+00:00'")
        kitchen = SqliteHistory(store, "kitchen")
        kitchen.store_turn(TURN)
        kitchen.store_reply(REPLY)
    return path


@pytest.fixture
def config(tmp_path: Path, history: Path) -> Path:
    file = tmp_path / "voicechart.toml"
    file.write_text(
        f'conversation_id = "garden"\n[audio]\nendpoint = "unix:/run/audio.sock"\n[history]\npath = "{history.name}"\n'
    )
    return file


# -- show ----------------------------------------------------------------------------------------------------------


def test_show_tells_what_was_heard_where_it_was_cut_and_what_was_not_heard(history: Path) -> None:
    shown = run("show", "kitchen", "--history", history)
    assert shown.exit_code == 0
    heading, user, tool, assistant = (" ".join(line.split()) for line in shown.stdout.strip().splitlines())
    assert heading.startswith("kitchen: 1 turns, 1 replies, begun ")
    assert user.endswith("user tell me a story")
    assert tool.endswith("tool clock({}) → completed: noon")
    assert assistant.endswith("assistant Once upon a time. ✂ interrupted [not heard: There was a clock.]")


def test_show_without_a_name_takes_the_latest_conversation_or_the_configured_one(history: Path, config: Path) -> None:
    assert "tell me a story" in run("show", "--history", history).stdout
    assert "water the roses" in run("show", "--config", config).stdout
    assert "water the roses" in run("show", cwd=config.parent).stdout


def test_show_can_be_narrowed_to_the_end(history: Path) -> None:
    shown = run("show", "kitchen", "--history", history, "--last", 1)
    assert "tell me a story" not in shown.stdout
    assert "Once upon a time." in shown.stdout


def test_show_as_json_is_one_object_with_the_exported_records(history: Path) -> None:
    shown = json.loads(run("show", "kitchen", "--history", history, "--json").stdout)
    assert (shown["conversation_id"], shown["version"]) == ("kitchen", 1)
    turn, reply = shown["records"]
    assert (turn["kind"], turn["text"]) == ("turn", "tell me a story")
    assert reply["heard"] == "Once upon a time. [interrupted by the user]"
    assert reply["delivery"]["status"] == "interrupted"


@pytest.mark.parametrize(
    ("delivery", "plain"),
    [
        (replace(CUT, status=DeliveryStatus.DELIVERED, text=REPLY.generated), "Once upon a time. There was a clock."),
        (
            replace(CUT, status=DeliveryStatus.TEXT_ONLY, text=REPLY.generated),
            "Once upon a time. There was a clock. (shown, not spoken)",
        ),
        (
            replace(CUT, text="Once upon a time. There was", cut=Cut.WORD),
            "Once upon a time. There was ✂ interrupted at this word [not heard: a clock.]",
        ),
        (
            replace(CUT, source=PositionSource.ESTIMATED),
            "Once upon a time. ✂ interrupted (estimated position) [not heard: There was a clock.]",
        ),
        (
            replace(CUT, status=DeliveryStatus.UNKNOWN, text=""),
            "? how much of it was heard is unknown [not heard: Once upon a time. There was a clock.]",
        ),
        (
            replace(CUT, status=DeliveryStatus.FAILED, text=""),
            "✗ failed (interrupted) [not heard: Once upon a time. There was a clock.]",
        ),
        (None, "… still being said [not heard: Once upon a time. There was a clock.]"),
    ],
)
def test_every_delivery_has_words_of_its_own(delivery: Delivery | None, plain: str) -> None:
    assert reply_text(replace(REPLY, delivery=delivery)).plain == plain


def test_a_call_stands_where_it_was_made_in_what_was_heard(history: Path) -> None:
    early, late = replace(CALL, text_position=5), replace(CALL, text_position=30)
    with HistoryStore(history) as store:
        SqliteHistory(store, "kitchen").store_reply(replace(REPLY, tools=(early, late)))
    shown = run("show", "kitchen", "--history", history, "--last", 1).stdout
    _, *rows = (" ".join(line.split()[2 if line.startswith("2") else 0 :]) for line in shown.strip().splitlines())
    assert rows == [
        "assistant Once",
        "tool clock({}) → completed: noon",
        "assistant upon a time.",
        "tool clock({}) → completed: noon",
        "assistant ✂ interrupted [not heard: There was a clock.]",
    ]


def test_a_reply_of_nothing_says_so_and_a_running_call_too() -> None:
    empty = replace(REPLY, generated="", delivery=replace(CUT, status=DeliveryStatus.FAILED, text=""), reason="")
    assert reply_text(empty).plain == "✗ failed (nothing was written)"
    assert call_text(replace(CALL, status=None, output="")).plain == "clock({}) → still running"


def test_what_was_said_cannot_steer_the_terminal(history: Path) -> None:
    assert printable("a\x1b[2Jb\x07c\x9bd\ne") == "a�[2Jb�c�d\ne"
    with HistoryStore(history) as store:
        SqliteHistory(store, "kitchen").store_turn(replace(TURN, text="\x1b]0;title\x07 [bold]hello[/bold]"))
    shown = run("show", "kitchen", "--history", history).stdout
    assert "\x1b" not in shown
    assert "[bold]hello[/bold]" in shown


# -- list, export --------------------------------------------------------------------------------------------------


def test_list_has_the_latest_conversation_first(history: Path) -> None:
    _, first, second = run("list", "--history", history).stdout.strip().splitlines()
    assert first.split()[:3] == ["kitchen", "1", "1"]
    assert second.split()[:3] == ["garden", "1", "0"]
    listed = json.loads(run("list", "--history", history, "--json").stdout)
    assert [entry["conversation_id"] for entry in listed["conversations"]] == ["kitchen", "garden"]
    assert listed["conversations"][1]["last_stored_at"].startswith("2025-01-01")


def test_export_writes_one_record_a_line(history: Path) -> None:
    lines = [json.loads(line) for line in run("export", "--history", history).stdout.splitlines()]
    assert [(line["conversation_id"], line["kind"]) for line in lines] == [
        ("kitchen", "conversation"),
        ("kitchen", "turn"),
        ("kitchen", "reply"),
        ("garden", "conversation"),
        ("garden", "turn"),
    ]
    one = run("export", "garden", "--history", history).stdout.splitlines()
    assert len(one) == 2


def test_export_to_a_file_is_for_the_owners_eyes_only(history: Path, tmp_path: Path) -> None:
    exported = tmp_path / "out.jsonl"
    assert run("export", "--history", history, "--output", exported).exit_code == 0
    assert len(exported.read_text(encoding="utf-8").splitlines()) == 5
    assert exported.stat().st_mode & 0o777 == 0o600


def test_export_to_a_place_that_cannot_be_written_fails_with_the_reason(history: Path, tmp_path: Path) -> None:
    failed = run("export", "--history", history, "--output", tmp_path / "nowhere" / "out.jsonl")
    assert failed.exit_code == 1
    assert "out.jsonl cannot be written: No such file" in failed.stderr


# -- prune ---------------------------------------------------------------------------------------------------------


def test_prune_forgets_what_is_older_and_a_dry_run_only_says_so(history: Path) -> None:
    arguments = ("prune", "--older-than", "30d", "--history", history)

    def turns_in_the_garden() -> int:
        listed = json.loads(run("list", "--history", history, "--json").stdout)["conversations"]
        return {each["conversation_id"]: each["turns"] for each in listed}["garden"]

    tried = run(*arguments, "--dry-run")
    assert tried.stdout.startswith("1 turns and 0 replies of 1 conversations would be forgotten: everything before ")
    assert turns_in_the_garden() == 1
    done = json.loads(run(*arguments, "--json").stdout)
    assert {name: done[name] for name in ("ok", "dry_run", "conversations", "turns", "replies")} == {
        "ok": True,
        "dry_run": False,
        "conversations": 1,
        "turns": 1,
        "replies": 0,
    }
    assert turns_in_the_garden() == 0
    assert run(*arguments).stdout.startswith("0 turns and 0 replies of 0 conversations were forgotten")


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("90m", timedelta(minutes=90)),
        ("12h", timedelta(hours=12)),
        ("30d", timedelta(days=30)),
        ("4w", timedelta(weeks=4)),
        ("0d", timedelta()),
        ("99999w", timedelta(weeks=99_999)),
    ],
)
def test_an_age_is_a_number_and_a_unit(text: str, age: timedelta) -> None:
    assert parse_age(text) == age


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1.5d", "30 d", "30y", "100000d", "30dd", "٣d"])
def test_anything_else_is_no_age(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="such as 30d"):
        parse_age(text)


def test_an_age_beyond_the_calendar_forgets_nothing(history: Path) -> None:
    ran = run("prune", "--older-than", "99999w", "--history", history)
    assert ran.exit_code == 0
    assert ran.stdout.startswith("0 turns")


# -- refusals ------------------------------------------------------------------------------------------------------


def refused(*arguments: object, cwd: Path) -> str:
    ran = run(*arguments, cwd=cwd)
    assert ran.exit_code == 2
    assert ran.stdout == ""
    return ran.stderr


def test_bad_input_ends_with_2_and_says_what_to_write(history: Path, config: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert "name the file with --history FILE" in refused("list", cwd=elsewhere)
    assert "leave one out" in refused("list", "--history", history, "--config", config, cwd=elsewhere)
    assert "there is no history at" in refused("list", "--history", elsewhere / "none.db", cwd=elsewhere)
    assert not (elsewhere / "none.db").exists()
    unknown = refused("show", "attic", "--history", history, cwd=elsewhere)
    assert "no conversation 'attic': choose one of kitchen, garden" in unknown
    assert "such as 30d" in refused("prune", "--older-than", "30", "--history", history, cwd=elsewhere)
    assert "--older-than" in refused("prune", "--history", history, cwd=elsewhere)
    assert "--last" in refused("show", "--history", history, "--last", 0, cwd=elsewhere)
    (elsewhere / "text.db").write_text("no database " * 500)
    assert "no history file" in refused("list", "--history", elsewhere / "text.db", cwd=elsewhere)


def test_a_configuration_that_keeps_no_history_or_is_wrong_says_so(tmp_path: Path) -> None:
    file = tmp_path / "voicechart.toml"
    file.write_text('[audio]\nendpoint = "unix:/run/audio.sock"\n')
    assert "keeps no history: add a table [history]" in refused("list", cwd=tmp_path)
    file.write_text('[audio]\nendpoint = "browser"\n')
    assert "only voice input" in refused("list", cwd=tmp_path)
    assert "cannot be read" in refused("list", "--config", tmp_path / "none.toml", cwd=tmp_path)


def test_an_empty_history_has_nothing_to_show(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    HistoryStore(path).close()
    assert "holds no conversation yet" in refused("show", "--history", path, cwd=tmp_path)
    assert run("list", "--history", path).exit_code == 0
    assert run("export", "--history", path).stdout == ""


def test_a_refusal_as_json_is_an_object_too(history: Path) -> None:
    ran = run("show", "attic", "--history", history, "--json")
    assert ran.exit_code == 2
    answer = json.loads(ran.stdout)
    assert answer["ok"] is False
    assert "attic" in answer["problems"][0]


@pytest.mark.slow
def test_a_history_that_is_locked_fails_with_1(history: Path) -> None:
    blocker = sqlite3.connect(history, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    ran = run("prune", "--older-than", "1d", "--history", history)
    blocker.close()
    assert ran.exit_code == 1
    assert "another process holds it" in ran.stderr
