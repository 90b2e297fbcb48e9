"""A server that breaks the protocol in one way: `rude_server.py WAY`. Without the official package, which could not."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

TOOL = {"name": "count", "description": "Count.", "inputSchema": {"type": "object"}}


def answer(request: dict[str, Any], result: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


def refuse(request: dict[str, Any], code: int, message: str) -> None:
    error = {"code": code, "message": message}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}), flush=True)


def call(way: str, request: dict[str, Any]) -> None:
    match way:
        case "garbage_result":
            answer(request, {"content": "no list", "isError": "perhaps"})
        case "garbage_lines":
            for _ in range(1_000):
                print("this is no message", flush=True)
            answer(request, {"content": [{"type": "text", "text": "late"}]})
        case "long_line":
            sys.stdout.write("x" * 4_000_000)
            sys.stdout.flush()
        case "refusing":
            refuse(request, -32602, "no such \x1b[31mplate")
        case "notifying":
            for number in range(2_000):
                message = {"level": "info", "data": f"{number}"}
                print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": message}))
            answer(request, {"content": [{"type": "text", "text": "counted"}]})
        case "answering_twice":
            answer(request, {"content": [{"type": "text", "text": "first"}]})
            answer(request, {"content": [{"type": "text", "text": "second"}]})
        case _:
            answer(request, {"content": [{"type": "text", "text": "counted"}]})


def main(way: str) -> None:
    if way == "mute":
        time.sleep(3_600)
    if way == "gone":
        return
    for line in sys.stdin:
        request = json.loads(line)
        match request.get("method"):
            case "initialize":
                answer(
                    request,
                    {
                        "protocolVersion": request["params"]["protocolVersion"],
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "rude", "version": "1"},
                    },
                )
            case "tools/list" if way == "endless_pages":
                answer(request, {"tools": [TOOL], "nextCursor": "more"})
            case "tools/list":
                answer(request, {"tools": [TOOL]})
            case "tools/call":
                call(way, request)
            case str() if "id" in request:
                refuse(request, -32601, "unknown")
            case _:
                pass


if __name__ == "__main__":
    main(sys.argv[1])
