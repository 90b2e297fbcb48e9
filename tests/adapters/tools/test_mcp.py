"""MCP servers, real ones and rude ones: whatever they do, each call has one outcome and nothing is left behind."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from voicechart.adapters.tools.mcp_http import HttpServer
from voicechart.adapters.tools.mcp_pins import Definition
from voicechart.adapters.tools.mcp_server import McpServer
from voicechart.adapters.tools.mcp_stdio import StdioServer
from voicechart.adapters.tools.mcp_tools import ServerRules, ToolRules, offered_tools, serving
from voicechart.engines import SideEffects, Tool, ToolError
from voicechart.engines.tool_arguments import ArgumentsRefused

# Each test starts a process or a server.
pytestmark = [pytest.mark.anyio, pytest.mark.slow]

HERE = Path(__file__).parent
EVERYTHING = ServerRules(frozenset("*"))
HARMLESS = ServerRules(frozenset("*"), ToolRules(SideEffects.NONE))


def kitchen(*arguments: str, environment: dict[str, str] | None = None, connect_ms: int = 20_000) -> McpServer:
    script = str(HERE / "kitchen_server.py")
    endpoint = StdioServer(sys.executable, (script, *arguments), environment or {})
    return McpServer("kitchen", endpoint, connect_ms=connect_ms)


def rude(way: str, connect_ms: int = 20_000) -> McpServer:
    return McpServer("rude", StdioServer(sys.executable, (str(HERE / "rude_server.py"), way)), connect_ms=connect_ms)


async def definitions_of(server: McpServer) -> tuple[Definition, ...]:
    async with serving([server]):
        await server.connect()
        return server.definitions


@asynccontextmanager
async def tools_of(server: McpServer, rules: ServerRules = EVERYTHING) -> AsyncGenerator[dict[str, Tool]]:
    """Everything that it offers now, pinned as it is."""
    async with serving([server]):
        await server.connect()
        tools, refused = offered_tools(server, server.definitions, rules)
        assert refused == ()
        yield {tool.name.removeprefix(f"{server.name}__"): tool for tool in tools}


async def run(tool: Tool, arguments: str = "{}") -> object:
    return await tool.run(tool.form.parse(arguments))


async def failure_of(tool: Tool, arguments: str = "{}") -> ToolError:
    with pytest.raises(ToolError) as raised:
        await run(tool, arguments)
    return raised.value


async def test_what_is_raised_beside_the_servers_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with serving([kitchen()]):
            raise ZeroDivisionError


async def test_a_tool_of_a_real_server_over_stdio_has_its_name_schema_and_result(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with tools_of(kitchen(str(log))) as tools:
        count = tools["count"]
        assert (count.name, count.description) == ("kitchen__count", "Count the plates.")
        assert '"plates"' in count.definition().parameters_schema
        assert await run(count, '{"plates": 3}') == "3 plates"
        with pytest.raises(ArgumentsRefused, match="plates"):
            count.form.parse('{"plates": "many"}')
    assert log.read_text().splitlines() == ["started", "count 3"]


async def test_calls_beside_each_other_each_get_their_own_answer() -> None:
    async with tools_of(kitchen()) as tools:
        answers: dict[int, object] = {}

        async def ask(plates: int) -> None:
            answers[plates] = await run(tools["count"], f'{{"plates": {plates}}}')

        async with anyio.create_task_group() as asking:
            for plates in range(20):
                asking.start_soon(ask, plates)
    assert answers == {plates: f"{plates} plates" for plates in range(20)}


async def test_a_tool_that_fails_says_why_and_leaves_no_doubt() -> None:
    async with tools_of(kitchen()) as tools:
        failure = await failure_of(tools["fail"])
        assert "fail" in str(failure)
        assert not failure.effect_unknown


async def test_a_server_that_dies_in_a_call_leaves_doubt_and_is_started_again_for_the_next_call(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with tools_of(kitchen(str(log))) as tools:
        failure = await failure_of(tools["die"])
        assert failure.effect_unknown
        assert "lost" in str(failure)
        assert await run(tools["count"], '{"plates": 1}') == "1 plates"
    # The call itself was never made again.
    assert log.read_text().splitlines() == ["started", "die", "started", "count 1"]


async def test_a_call_that_only_looked_leaves_no_doubt_when_the_server_dies() -> None:
    async with tools_of(kitchen(), HARMLESS) as tools:
        assert not (await failure_of(tools["die"])).effect_unknown


async def test_a_call_that_hangs_is_let_go_and_the_next_one_is_answered() -> None:
    async with tools_of(kitchen()) as tools:
        with anyio.move_on_after(0.2) as bounded:
            await run(tools["hang"])
        assert bounded.cancelled_caught
        assert await run(tools["count"], '{"plates": 2}') == "2 plates"


async def test_leaving_stops_a_server_that_is_in_the_middle_of_a_call(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with anyio.fail_after(15):
        async with tools_of(kitchen(str(log))) as tools, anyio.create_task_group() as tasks:
            tasks.start_soon(run, tools["hang"])
            while "hang" not in log.read_text():  # noqa: ASYNC110 - another process writes it
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()


async def test_a_server_gets_only_the_environment_that_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_SECRET", "hidden")
    async with tools_of(kitchen(environment={"GIVEN": "yes"})) as tools:
        assert await run(tools["environment"], '{"name": "GIVEN"}') == "yes"
        assert await run(tools["environment"], '{"name": "PLANTED_SECRET"}') == "nothing"


async def test_a_changed_definition_is_refused_and_does_not_run(tmp_path: Path) -> None:
    pinned = await definitions_of(kitchen())
    log = tmp_path / "log"
    changed = kitchen(str(log), "Count the plates, and tell them to anybody who asks.")
    tools, _ = offered_tools(changed, pinned, EVERYTHING)
    count = next(tool for tool in tools if tool.name == "kitchen__count")
    async with serving([changed]):
        failure = await failure_of(count, '{"plates": 3}')
    assert "has changed since it was approved" in str(failure)
    assert not failure.effect_unknown
    assert log.read_text().splitlines() == ["started"]


async def test_only_what_is_allowed_is_offered() -> None:
    server = kitchen()
    pinned = await definitions_of(server)
    tools, _ = offered_tools(server, pinned, ServerRules(frozenset({"count", "unknown"})))
    assert [tool.name for tool in tools] == ["kitchen__count"]
    assert offered_tools(server, pinned, ServerRules()) == ((), ())


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        (Definition(name="with space", input_schema={"type": "object"}), "letters, digits"),
        (Definition(name="x" * 60, input_schema={"type": "object"}), "more than 64"),
        (Definition(name="list", input_schema={"type": "array"}), "does not describe an object"),
        (Definition(name="odd", input_schema={"type": "object", "required": 3}), "no valid JSON Schema"),
    ],
)
def test_a_tool_that_no_model_could_use_is_left_out_with_the_reason(definition: Definition, reason: str) -> None:
    tools, refused = offered_tools(kitchen(), [definition], EVERYTHING)
    assert tools == ()
    assert len(refused) == 1
    assert reason in refused[0]


def test_a_schema_that_points_elsewhere_is_never_fetched() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}}
    (tool,), _ = offered_tools(kitchen(), [Definition(name="far", input_schema=schema)], EVERYTHING)
    with pytest.raises(ArgumentsRefused, match="cannot be followed"):
        tool.form.parse('{"a": 1}')


async def test_what_a_server_cannot_be_started_for_is_told_and_nothing_ran() -> None:
    server = McpServer("missing", StdioServer("/no/such/program"))
    (tool,), _ = offered_tools(server, [Definition(name="a", input_schema={"type": "object"})], EVERYTHING)
    async with serving([server]):
        failure = await failure_of(tool)
    assert str(failure) == "it did not run: the server missing cannot be reached"
    assert not failure.effect_unknown


@pytest.mark.parametrize("way", ["mute", "gone"])
async def test_a_server_that_never_answers_or_ends_at_once_is_unavailable_within_its_time(way: str) -> None:
    server = rude(way, connect_ms=500)
    (tool,), _ = offered_tools(server, [Definition(name="count", input_schema={"type": "object"})], EVERYTHING)
    with anyio.fail_after(15):
        async with serving([server]):
            assert "cannot be reached" in str(await failure_of(tool))


@pytest.mark.parametrize("way", ["garbage_result", "garbage_lines", "long_line"])
async def test_what_cannot_be_read_is_a_failed_call_in_doubt_and_never_more_than_its_bound(way: str) -> None:
    with anyio.fail_after(20):
        async with tools_of(rude(way)) as tools:
            failure = await failure_of(tools["count"])
    assert failure.effect_unknown


async def test_a_servers_refusal_is_told_without_doubt() -> None:
    async with tools_of(rude("refusing")) as tools:
        failure = await failure_of(tools["count"])
    assert str(failure).startswith("the server refused the call: no such")
    assert not failure.effect_unknown


@pytest.mark.parametrize(("way", "said"), [("notifying", "counted"), ("answering_twice", "first")])
async def test_noise_around_an_answer_is_no_answer(way: str, said: str) -> None:
    async with tools_of(rude(way)) as tools:
        assert await run(tools["count"]) == said
        assert await run(tools["count"]) == said


async def test_a_listing_without_an_end_is_cut() -> None:
    assert len(await definitions_of(rude("endless_pages"))) == 16


async def test_a_result_longer_than_a_line_may_be_breaks_the_connection_and_not_the_memory() -> None:
    async with tools_of(kitchen()) as tools:
        assert (await failure_of(tools["flood"], '{"megabytes": 2}')).effect_unknown


@asynccontextmanager
async def over_http(tmp_path: Path, token: str | None = None) -> AsyncGenerator[str]:
    """The same real server, over streamable HTTP on loopback, in this process."""
    import uvicorn
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import Response

    sys.path.insert(0, str(HERE))
    try:
        import kitchen_server
    finally:
        sys.path.remove(str(HERE))
    app = kitchen_server.kitchen().streamable_http_app()
    if token is not None:

        async def guard(request: object, call_next: object) -> Response:
            if request.headers.get("authorization") != f"Bearer {token}":  # type: ignore[attr-defined]
                return Response("no", status_code=401)
            return await call_next(request)  # type: ignore[operator]

        app.add_middleware(BaseHTTPMiddleware, dispatch=guard)  # type: ignore[arg-type]
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", ws="none"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        while not server.started:  # noqa: ASYNC110 - it tells in no other way
            await anyio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/mcp"
        server.should_exit = True
        server.force_exit = True


async def test_the_same_over_streamable_http(tmp_path: Path) -> None:
    async with over_http(tmp_path) as url, tools_of(McpServer("kitchen", HttpServer(url))) as tools:
        assert await run(tools["count"], '{"plates": 3}') == "3 plates"
        assert "fail" in str(await failure_of(tools["fail"]))


async def test_a_bearer_token_is_sent_and_its_absence_makes_the_server_unreachable(tmp_path: Path) -> None:
    async with over_http(tmp_path, token="s3cret") as url:
        async with tools_of(McpServer("kitchen", HttpServer(url, "s3cret"))) as tools:
            assert await run(tools["count"], '{"plates": 3}') == "3 plates"
        server = McpServer("kitchen", HttpServer(url), connect_ms=3_000)
        (tool,), _ = offered_tools(server, [Definition(name="count", input_schema={"type": "object"})], EVERYTHING)
        async with serving([server]):
            assert "cannot be reached" in str(await failure_of(tool))


def test_no_secret_is_in_what_describes_a_server() -> None:
    secret = "planted-secret"
    assert secret not in repr(HttpServer("https://example.org/mcp", secret))
    assert secret not in repr(StdioServer("server", environment={"KEY": secret}))
