"""The list of known traps: what providers do that adapters fall over. Each has a test that is named after it.

A test says which trap it shows: by its name (`test_trap_55_…`, or `test_55_…` in `test_known_traps.py`), or at the
beginning of its docstring ("Trap 39.", "Traps 2 and 6."). A number is never used again.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
BY_NAME = re.compile(r"test_trap_(\d+)_")
BY_NAME_OF_ITS_FILE = re.compile(r"test_(\d+)_")
BY_DOCSTRING = re.compile(r"Traps? (\d+(?:(?:, | and )\d+)*)")

TRAPS: dict[str, dict[int, str]] = {
    "OpenAI Realtime": {
        1: "a cancel with nothing active is an error that means that it has ended already",
        2: "the same error comes after response.done, when nobody remembers the cancel",
        3: "a cancel before response.created does nothing, and the response is made all the same",
        4: "a cancel beside the service's own interruption cancels twice",
        5: "a response while another is active is refused: wait for its end, and ask once more",
        6: "an error may have neither code nor event_id; its text decides nothing",
        7: "cancelled, incomplete, failed and unknown are four different ends, and none of them completion",
        8: "deltas of a cancelled response are on their way when it is cancelled",
        9: "a cut beyond what was received is refused",
        10: "a cut at 0 ms is refused: take the item out",
        11: "a cut by the clock on the wall is wrong: samples that were played count, by item",
        12: "where a cut is refused, the model believes that it said everything",
        13: "audio_end_ms is a whole number, and lax types take others",
        14: "names of the beta are not those of the protocol, and lax parsers take them",
        15: "a cut removes the transcript at the service",
    },
    "Chat Completions and Responses": {
        16: "a chunk with usage has no choices",
        17: "only the first delta of a call has its id and name",
        18: "compatible servers leave out the index, use it again, or never send an id",
        19: "an answer that ends without finish_reason and [DONE] was cut",
        20: "an error comes in the stream after the status 200",
        21: "an error of Responses is flat, and looks like any event",
        22: "deltas of arguments have no call_id: the item has",
        23: "a prefix of arguments is never carried out",
    },
    "Anthropic Messages": {
        24: "pings and unknown events come anywhere",
        25: "an error after the status 200 is no short success",
        26: "an answer that ends before message_stop was cut",
        27: "a call may have no arguments, and empty deltas",
        28: "output tokens are cumulative; a pause and a refusal are no completion",
    },
    "Gemini Live": {
        29: "an interrupted turn has no generationComplete",
        30: "generationComplete and turnComplete are a whole playback apart",
        31: "a turnComplete of an interaction that is in progress is not the end",
        32: "goAway leaves time: going at once cuts a reply",
        33: "after goAway it may say nothing any more",
        34: "handles of sessions may be empty, or not good for resumption",
        35: "the former connection must be closed before a session goes on; pongs are late",
        36: "one message may hold several things, and transcripts come in any order",
        37: "messages are text or binary, in camelCase or snake_case",
        38: "a call that is cancelled while it runs has no result any more",
    },
    "Deepgram": {
        39: "is_final may never be followed by speech_final",
        40: "an empty final is no turn, and closes a pending one",
        41: "an utterance has two ends, or one from before its last word",
        42: "Finalize may have no answer, and says nothing about the utterance",
        43: "keep-alives are text messages, every few seconds",
        44: "messages of unknown kinds",
    },
    "AssemblyAI": {
        45: "the transcript is empty while words are not final",
        46: "a formatted end follows an unformatted one of the same turn",
        47: "audio goes out in pieces of 50 to 1,000 ms",
        48: "turns are on their way when it is asked to end",
        49: "keys that only the documentation knows",
    },
    "ElevenLabs": {
        50: "isFinal is null beside audio",
        51: "a flush has no end: closing the context has",
        52: "ending a context that was never opened opens it, and few may be open",
        53: "20 s without text close the connection",
        54: "two writers part a text from its end",
    },
    "Cartesia": {
        55: "a cancelled context goes on with what was begun",
        56: "an error without a context is the connection's",
    },
    "DashScope and Qwen": {
        57: "nothing may be sent before the task has started",
        58: "a connection that closes before the task has finished is a failure",
        59: "a heartbeat is no transcript; a sentence is final by its mark or its end",
        60: "a failed task spoils its connection",
        61: "events of an earlier task come on a connection that is used again",
        62: "Qwen speaks in the names of the beta, and audio only with text",
        63: "a partial transcript is what is settled and a guess behind it",
        64: "a session that has begun cannot be configured",
        65: "when a session is finished, and whether it says so, depends on the model",
    },
}
EVERY = {number: told for traps in TRAPS.values() for number, told in traps.items()}


def shown(path: Path) -> Iterator[tuple[int, str]]:
    """Traps and the tests of a file that are named after them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
            continue
        name = BY_NAME.match(node.name)
        if name is None and path.name == "test_known_traps.py":
            name = BY_NAME_OF_ITS_FILE.match(node.name)
        docstring = BY_DOCSTRING.match(ast.get_docstring(node) or "")
        numbers = ([name[1]] if name else []) + (re.findall(r"\d+", docstring[1]) if docstring else [])
        for number in numbers:
            yield int(number), f"{path.relative_to(TESTS)}::{node.name}"


@pytest.fixture(scope="module")
def tests_by_trap() -> dict[int, set[str]]:
    found: defaultdict[int, set[str]] = defaultdict(set)
    for path in TESTS.rglob("test_*.py"):
        if "oracles" not in path.parts:
            for number, test in shown(path):
                found[number].add(test)
    return found


@pytest.mark.parametrize("number", EVERY, ids=lambda number: f"trap {number}")
def test_every_known_trap_has_a_test_that_is_named_after_it(number: int, tests_by_trap: dict[int, set[str]]) -> None:
    assert tests_by_trap.get(number), f"no test is named after trap {number}: {EVERY[number]}"


def test_every_test_of_a_trap_names_a_known_one(tests_by_trap: dict[int, set[str]]) -> None:
    assert {number: tests for number, tests in tests_by_trap.items() if number not in EVERY} == {}


def test_the_traps_are_counted_through() -> None:
    assert [number for traps in TRAPS.values() for number in traps] == list(range(1, 66))
