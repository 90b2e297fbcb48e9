"""The tools of a configuration: what is offered, and what is refused or noted instead."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from voicechart.adapters.composition import OfferedTools, compose, make_tools
from voicechart.adapters.configuration import ConfigurationRefused, parse_configuration
from voicechart.adapters.tools.mcp_pins import Definition, written_pins
from voicechart.engines import HoldLine, HoldLines, SideEffects

AUDIO = '[audio]\nendpoint = "unix:/run/voicechart/audio.sock"\n'
OPENAI = '[responder]\nkind = "openai-chat"\nbase_url = "https://x.example/v1"\nmodel = "m"\n'
KITCHEN = '[tools]\nlock = "mcp.lock.json"\n[mcp.kitchen]\ncommand = "kitchen-server"\n'
COUNT = Definition(name="count", description="Count.", input_schema={"type": "object"})
LOOK = Definition(name="look", description="Look.", input_schema={"type": "object"})

MODULE = '''
from pydantic import BaseModel
from voicechart.engines import HoldLine, HoldLines, tool

class Lamp(BaseModel):
    number: int

async def switch(lamp: Lamp) -> str:
    """Switch a lamp."""
    return "on"

TOOLS = [tool(switch), tool(switch, name="patient", hold=HoldLines((HoldLine(5, "Mine."),)))]
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lamps_to_compose.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "mcp.lock.json").write_bytes(written_pins({"kitchen": (COUNT, LOOK)}))
    return tmp_path


def offered(folder: Path, text: str, environment: dict[str, str] | None = None) -> OfferedTools:
    return make_tools(parse_configuration(AUDIO + text, folder), environment or {})


def refusal(folder: Path, text: str) -> tuple[str, str]:
    with pytest.raises(ConfigurationRefused) as refused:
        offered(folder, text)
    (problem,) = refused.value.problems
    return problem.path, problem.message


def test_nothing_is_offered_unless_somebody_asks_for_it(folder: Path) -> None:
    assert offered(folder, "") == OfferedTools()


def test_tools_of_modules_are_offered_with_the_lines_that_hold_for_all_and_their_own(folder: Path) -> None:
    hold = '[[tools.hold.ladder]]\nafter_ms = 700\ntext = "One moment."\n'
    tools = offered(folder, f'[tools]\nmodules = ["lamps_to_compose:TOOLS"]\n{hold}').tools
    assert [tool.name for tool in tools] == ["switch", "patient"]
    assert [tool.hold for tool in tools] == [
        HoldLines((HoldLine(700, "One moment."),)),
        HoldLines((HoldLine(5, "Mine."),)),
    ]


def test_lines_for_one_tool_go_before_all_others_and_may_be_silence(folder: Path) -> None:
    text = '[tools]\nmodules = ["lamps_to_compose:TOOLS"]\n[tools.hold_for.patient]\n[tools.hold_for.absent]\n'
    found = offered(folder, text)
    assert found.tools[1].hold == HoldLines()
    assert found.notes == ("tools.hold_for names absent, which nobody offers",)


def test_pinned_and_allowed_tools_of_a_server_are_offered_without_starting_it(folder: Path) -> None:
    found = offered(
        folder, f'{KITCHEN}allow = ["count"]\ntools = {{ count = {{ side_effects = "none", timeout_ms = 5000 }} }}\n'
    )
    (count,) = found.tools
    assert (count.name, count.description) == ("kitchen__count", "Count.")
    assert (count.side_effects, count.timeout_ms) == (SideEffects.NONE, 5_000)
    assert [server.name for server in found.servers] == ["kitchen"]
    assert found.notes == ()


def test_a_server_of_which_nothing_is_pinned_or_allowed_offers_nothing_and_the_operator_is_told(folder: Path) -> None:
    (folder / "mcp.lock.json").unlink()
    found = offered(folder, f'{KITCHEN}allow = ["*"]\n')
    assert found.tools == ()
    assert "run voicechart mcp pin kitchen" in found.notes[0]
    (folder / "mcp.lock.json").write_bytes(written_pins({"kitchen": (COUNT,)}))
    assert offered(folder, KITCHEN).notes == ("mcp.kitchen: allow is empty, so nothing is offered",)
    assert offered(folder, f'{KITCHEN}allow = ["cuont"]\n').notes == (
        "mcp.kitchen: cuont is not among its pinned tools",
    )


def test_a_server_that_is_not_enabled_is_as_if_it_were_not_there(folder: Path) -> None:
    assert offered(folder, f'{KITCHEN}allow = ["*"]\nenabled = false\n') == OfferedTools()


@pytest.mark.parametrize(
    ("text", "path", "part"),
    [
        ('[tools]\nmodules = ["lamps_to_compose:NONE"]\n', "tools.modules", "no list of tools"),
        ('[tools]\nmodules = ["lamps_to_compose:TOOLS", "lamps_to_compose:TOOLS"]\n', "tools.modules", "more than one"),
        ('[tools]\nmodules = ["lamps to compose"]\n', "tools.modules.0", "pattern"),
        (
            '[tools.hold]\nladder = [{ after_ms = 2, text = "a" }, { after_ms = 1, text = "b" }]\n',
            "tools.hold",
            "rising",
        ),
        ('[mcp.kitchen]\ncommand = "k"\n', "tools.lock", "need a file"),
        (KITCHEN + 'url = "https://k.example/mcp"\n', "mcp.kitchen", "either command or url"),
        ('[tools]\nlock = "l"\n[mcp.kitchen]\n', "mcp.kitchen", "either command or url"),
        ('[tools]\nlock = "l"\n[mcp.kitchen]\nurl = "http://k.example/mcp"\n', "mcp.kitchen", "unencrypted"),
        ('[tools]\nlock = "l"\n[mcp.kitchen]\nurl = "https://me:pw@k.example/"\n', "mcp.kitchen", "token_env"),
        ('[tools]\nlock = "l"\n[mcp.Kitchen]\ncommand = "k"\n', "mcp.Kitchen", "pattern"),
        (KITCHEN + "timeout_ms = 60001\n", "mcp.kitchen.timeout_ms", "longer than generation.tool_ms"),
        (KITCHEN + 'env = ["NOT_THERE"]\n', "mcp.kitchen.env", "not set"),
        (
            '[tools]\nlock = "l"\n[mcp.kitchen]\nurl = "https://k.example/mcp"\ntoken_env = "NOT_THERE"\n',
            "mcp.kitchen.token_env",
            "not set",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_path(folder: Path, text: str, path: str, part: str) -> None:
    found, message = refusal(folder, text)
    assert found == path
    assert part in message


def test_plain_http_is_fine_on_this_machine_and_where_somebody_says_so(folder: Path) -> None:
    for url in (
        '"http://127.0.0.1:8000/mcp"',
        '"http://localhost/mcp"',
        '"http://k.example/mcp"\nallow_plain_http = true',
    ):
        assert len(offered(folder, f'[tools]\nlock = "l"\n[mcp.kitchen]\nurl = {url}\n').servers) == 1


def test_a_broken_lock_file_is_refused(folder: Path) -> None:
    (folder / "mcp.lock.json").write_text("{}")
    assert refusal(folder, KITCHEN)[0] == "tools.lock"


def test_a_background_tool_may_take_longer_than_a_call_in_the_foreground(folder: Path) -> None:
    text = f'{KITCHEN}allow = ["*"]\ntools = {{ count = {{ background = true, timeout_ms = 600000 }} }}\n'
    assert offered(folder, text).tools[0].timeout_ms == 600_000


def test_a_model_that_cannot_call_tools_gets_none_and_the_operator_is_told(folder: Path) -> None:
    text = f'{AUDIO}[tools]\nmodules = ["lamps_to_compose:TOOLS"]\n'
    composition = compose(parse_configuration(text, folder), {})
    assert composition.ports.tools == ()
    assert composition.tools.notes == ("the responder cannot call tools: none is offered",)


def test_a_model_that_can_is_offered_them(folder: Path) -> None:
    text = f'{AUDIO}{OPENAI}[tools]\nmodules = ["lamps_to_compose:TOOLS"]\n'
    composition = compose(parse_configuration(text, folder), {})
    assert [tool.name for tool in composition.ports.tools] == ["switch", "patient"]
