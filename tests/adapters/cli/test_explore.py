"""`voicechart explore`: what is printed, and how it ends."""

from __future__ import annotations

import json

from typer import Typer
from typer.testing import CliRunner

from voicechart.adapters.cli.explore import explore

app = Typer()
app.command()(explore)
SMALL = ["--policy", "connection", "--configurations", "20", "--processes", "1"]


def test_an_unknown_scenario_is_refused_in_one_line_that_names_those_there_are() -> None:
    ended = CliRunner().invoke(app, ["--policy", "nonsense"])
    assert ended.exit_code == 2
    assert ended.stdout == ""
    assert "'nonsense'" in ended.stderr
    assert "'connection'" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_bound_that_leaves_nothing_is_refused() -> None:
    assert CliRunner().invoke(app, ["--depth", "0"]).exit_code == 2


def test_one_json_object_is_printed_and_nothing_else() -> None:
    ended = CliRunner().invoke(app, [*SMALL, "--json"])
    told = json.loads(ended.stdout)
    assert told["violations"] == 0
    assert told["dead_transitions"]
    assert ended.exit_code == 1  # one scenario alone does not take every transition


def test_people_get_a_table_and_what_is_missing() -> None:
    ended = CliRunner().invoke(app, SMALL)
    assert "violations: 0" in ended.stdout
    assert "transitions covered: " in ended.stdout
