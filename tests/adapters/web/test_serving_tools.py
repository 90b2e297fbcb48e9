"""`voicechart serve` offers the configured tools to the model that answers in writing, and runs them."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import httpx
import pytest
from anyio import to_thread

from voicechart.adapters.testing import ChatExchange, ScriptedChatServer, chat_chunks
from voicechart.adapters.testing.command import VoicechartCommand
from voicechart.engines.ports import ToolRequest

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(90)]
MODULE = '''
from pydantic import BaseModel
from voicechart.engines import tool

class Lamp(BaseModel):
    number: int

async def switch(lamp: Lamp) -> str:
    """Switch a lamp."""
    return f"lamp {lamp.number} is on"

TOOLS = [tool(switch)]
'''


async def test_a_tool_of_a_module_is_called_by_who_answers_in_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lamps_to_serve.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    call = ToolRequest("call_1", "switch", '{"number": 3}')
    server = ScriptedChatServer(ChatExchange(chat_chunks("", calls=(call,))), ChatExchange(chat_chunks("It is on.")))
    command = VoicechartCommand(tmp_path)
    config = tmp_path / "voicechart.toml"
    try:
        async with server.running() as base_url:
            config.write_text(
                '[audio]\nendpoint = "unix:/nonexistent/audio.sock"\n[tools]\nmodules = ["lamps_to_serve:TOOLS"]\n'
                f'[responder]\nkind = "openai-chat"\nmodel = "m"\nbase_url = "{base_url}"\n'
            )
            serving = command.start("serve", "--config", config, "--port", "0", "--json")
            await to_thread.run_sync(serving.wait_for_output, "address")
            address = json.loads(serving.output.read_text().splitlines()[0])["address"]
            with anyio.fail_after(60):
                async with httpx.AsyncClient(timeout=30) as client:
                    said = await client.post(f"{address}/api/chat", json={"text": "the third lamp please"})
    finally:
        command.kill_all()
    assert "It is on." in "".join(
        event["payload"].get("text", "") for event in map(json.loads, filter(None, said.text.splitlines()))
    )
    _, second = [request.body for request in server.requests if request.method == "POST"]
    assert b"lamp 3 is on" in second
