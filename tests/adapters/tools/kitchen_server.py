"""A real MCP server for tests, written with the official package: `kitchen_server.py [LOG [WORDS]]`, over stdio."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
from mcp.server import MCPServer

LOG = Path(sys.argv[1]) if len(sys.argv) > 1 else None
DESCRIPTION = sys.argv[2] if len(sys.argv) > 2 else "Count the plates."


def note(line: str) -> None:
    if LOG is not None:
        with LOG.open("a", encoding="utf-8") as lines:
            lines.write(f"{line}\n")


def kitchen() -> MCPServer:
    server = MCPServer("kitchen")

    @server.tool(description=DESCRIPTION)
    def count(plates: int) -> str:
        note(f"count {plates}")
        return f"{plates} plates"

    @server.tool(description="Fail.")
    def fail() -> str:
        raise RuntimeError("the oven is cold")

    @server.tool(description="Wait for ever.")
    async def hang() -> str:
        note("hang")
        await anyio.sleep_forever()
        raise AssertionError

    @server.tool(description="End the process in the middle of a call.")
    def die() -> str:
        note("die")
        os._exit(3)

    @server.tool(description="Say what of the environment is there.")
    def environment(name: str) -> str:
        return os.environ.get(name, "nothing")

    @server.tool(description="Say a lot.")
    def flood(megabytes: int) -> str:
        return "x" * (megabytes * 1_048_576)

    return server


if __name__ == "__main__":
    note("started")
    kitchen().run("stdio")
