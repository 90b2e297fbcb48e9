"""The page in a real browser: talking, watching, interrupting, losing the server and coming back."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from playwright.sync_api import Browser
from trio.testing import MockClock

from voicechart.adapters.testing.browser import NOT_INSTALLED, CuttableWire, Visit, browser, find_browser, visiting
from voicechart.adapters.testing.command import RunningCommand, VoicechartCommand
from voicechart.adapters.testing.spoken_site import CHINESE, FORECAST, SpokenRehearsal, SpokenSite, spoken_site
from voicechart.adapters.testing.web_site import site
from voicechart.adapters.web.folding import empty_state, fold
from voicechart.adapters.web.options import WebOptions

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_browser() is None, reason=NOT_INSTALLED)]
CURL = shutil.which("curl")
CONFIGURATION = (
    '[audio]\nendpoint = "unix:/nonexistent/audio.sock"\n[responder]\nkind = "companion"\ntoken_ms = 40\n'
    "[web]\nrequests_per_minute = 100000\nburst = 10000\n"
)
Json = dict[str, Any]


@pytest.fixture(scope="module")
def chromium() -> Generator[Browser]:
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def portal() -> Generator[BlockingPortal]:
    with start_blocking_portal("asyncio") as running:
        yield running


class Server:
    """`voicechart serve` as a process of its own, always at the same port."""

    def __init__(self, folder: Path) -> None:
        (folder / "voicechart.toml").write_text(CONFIGURATION)
        self._folder = folder
        self.command = VoicechartCommand(folder)
        self._running = self._start(0)
        self.address: str = json.loads(self._running.output.read_text().splitlines()[0])["address"]

    def kill(self) -> None:
        """Without a word to anybody."""
        self._running.process.kill()
        self._running.process.wait()

    def start_again(self) -> None:
        self._running = self._start(int(self.address.rpartition(":")[2]))

    def _start(self, port: int) -> RunningCommand:
        serving = self.command.start(
            "serve", "--config", self._folder / "voicechart.toml", "--port", str(port), "--json"
        )
        serving.wait_for_output("address")
        return serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    serving = Server(tmp_path_factory.mktemp("serving"))
    yield serving
    serving.command.kill_all()


@pytest.fixture
def spoken(portal: BlockingPortal) -> Generator[SpokenSite]:
    with portal.wrap_async_context_manager(spoken_site()) as site:
        yield site


def state_of(address: str, conversation_id: str | None = None) -> Json:
    named = {} if conversation_id is None else {"conversation_id": conversation_id}
    answer = httpx.get(f"{address}/api/state", params=named)
    assert answer.status_code == 200, answer.text
    return answer.json()


def at_rest(visit: Visit, replies: int = 1) -> None:
    """Until that many replies have come to their end, and the picture shows it."""
    visit.until(
        "voicechart.state.entries.filter((one) => one.kind === 'assistant' && one.delivery !== null"
        " && !['running', 'cancelling'].includes(one.state)).length === a",
        replies,
    )


def equals_the_server(visit: Visit, address: str, conversation_id: str | None = None) -> None:
    """What the page has folded, and what is lit, is what the server says."""
    told = state_of(address, conversation_id)
    visit.until("JSON.stringify([...voicechart.lit].sort()) === JSON.stringify(a)", sorted(told["configuration"]))
    assert visit.js("voicechart.state") == told["state"]
    epoch, sequence = map(int, told["watermark"].split(":"))
    seen_epoch, seen_sequence = map(int, visit.js("voicechart.cursor").split(":"))
    assert (seen_epoch, seen_sequence <= sequence) == (epoch, True)


# -- writing -------------------------------------------------------------------------------------------------------


def test_a_reply_is_seen_as_it_is_written_while_the_chart_moves(chromium: Browser, server: Server) -> None:
    with visiting(chromium, server.address) as visit:
        visit.until("voicechart.lit.includes('generation_idle')")
        visit.page.fill("#message", "Tell me")
        # Enter belongs to an input method while it composes.
        visit.js(
            "document.querySelector('#message').dispatchEvent("
            "new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true, cancelable: true}))"
        )
        visit.page.press("#message", "Shift+Enter")
        assert visit.page.input_value("#message") == "Tell me\n"
        visit.js(
            "(() => { window.flashed = new Set(); new MutationObserver((all) => all.forEach(({target}) =>"
            " target.classList.contains('flash') && target.classList.forEach((name) => flashed.add(name))))"
            ".observe(document.querySelector('#picture'), {subtree: true, attributeFilter: ['class']}); })()"
        )
        visit.say("Tell me a long story.")
        visit.until("voicechart.lit.includes('streaming')")
        rows: list[int] = visit.js("voicechart.trace.records.at(-1).taken.map((one) => one.row)")
        assert all(visit.js("flashed.has(`row_${a}`)", row) for row in rows)
        visit.until("document.querySelector('.assistant .said')?.textContent.length > 20")
        early: str = visit.js("document.querySelector('.assistant .said').textContent")
        assert not visit.js("voicechart.state.entries[1].is_final")
        visit.until("document.querySelector('.assistant .said').textContent.length > a", len(early) + 20)
        assert visit.js("document.querySelector('.assistant .said').textContent").startswith(early)
        visit.page.click("#stop")
        at_rest(visit)
        equals_the_server(visit, server.address)
        assert visit.js("document.querySelector('#regions').innerText.split(/\\s+/)")[-4:] == [
            "Generation",
            "cancelled",
            "Playback",
            "idle",
        ]
        assert visit.problems == []


def test_a_message_interrupts_the_reply_and_escape_stops_the_next_one(chromium: Browser, server: Server) -> None:
    with visiting(chromium, server.address, path="/#interrupting") as visit:
        visit.until("document.querySelector('#status').textContent.includes('begins with your first message')")
        visit.say("Tell me a long story.")
        visit.until("voicechart.state.entries.at(-1)?.text.length > 10")
        visit.say("Stop, tell me another long story.")
        visit.until("voicechart.state.entries.length === 4 && voicechart.state.entries[3].text !== ''")
        assert "interrupted" in visit.js("document.querySelectorAll('.assistant')[0].querySelector('.cut').textContent")
        visit.page.press("#message", "Escape")
        at_rest(visit, 2)
        assert visit.js("voicechart.state.entries.map((one) => one.state ?? one.status)") == [
            "committed",
            "cancelled",
            "committed",
            "cancelled",
        ]
        visit.until("document.querySelector('#stop').disabled")
        equals_the_server(visit, server.address, "interrupting")
        assert visit.js("[...document.querySelectorAll('#picker option')].map((one) => one.value)") == [
            "voicechart",
            "interrupting",
        ]
        assert visit.problems == []


# -- being lost ----------------------------------------------------------------------------------------------------


def test_a_cut_wire_loses_no_event_and_repeats_none(chromium: Browser, server: Server) -> None:
    with CuttableWire(server.address) as wire, visiting(chromium, wire.address, path="/#") as visit:
        visit.until("document.querySelector('#status').textContent === 'Connected'")
        before: int = visit.js("voicechart.state.entries.length")
        body = {"text": "Tell me a long story.", "conversation_id": "voicechart"}
        with httpx.stream("POST", f"{server.address}/api/chat", json=body) as answer:
            lines = answer.iter_lines()
            visit.until(
                "voicechart.state.entries.at(-1)?.text.length > 10 && voicechart.state.entries.length > a", before
            )
            wire.cut()
            visit.until("document.querySelector('#status').dataset.state === 'waiting'")
            assert "Connection lost. Trying again" in visit.page.inner_text("#status")
            seen: int = visit.js("voicechart.state.entries.at(-1).text.length")
            written = 0
            while written < seen + 40:
                line = next(lines)
                if line and json.loads(line)["type"] == "text.delta":
                    written += len(json.loads(line)["payload"]["text"])
            wire.mend()
            visit.until("document.querySelector('#status').textContent.includes('nothing was missed')")
            visit.until("voicechart.state.entries.at(-1).text.length >= a", written)
        at_rest(visit, (before + 2) // 2)
        equals_the_server(visit, server.address)
        counts = visit.js("voicechart.counts")
        assert (counts["snapshots"], counts["repeated"]) == (1, 0)
        assert visit.lost > 0
        assert visit.problems == []


def test_the_page_comes_back_to_a_server_that_was_killed_and_started_again(chromium: Browser, server: Server) -> None:
    with visiting(chromium, server.address) as visit:
        before: int = visit.js("voicechart.state?.entries.length ?? 0")
        visit.say("Tell me a long story.")
        visit.until("voicechart.state.entries.length > a && voicechart.state.entries.at(-1).text.length > 10", before)
        server.kill()
        visit.until("document.querySelector('#status').dataset.state === 'waiting'")
        visit.page.fill("#message", "Is anybody there?")
        visit.page.press("#message", "Enter")
        visit.until("document.querySelector('#problem').textContent.includes('does not answer')")
        assert visit.page.input_value("#message") == "Is anybody there?"
        server.start_again()
        visit.until("document.querySelector('#status').textContent.includes('the server was restarted')")
        assert visit.js("voicechart.state.entries") == []
        visit.page.press("#message", "Enter")
        at_rest(visit)
        equals_the_server(visit, server.address)
        assert visit.js("voicechart.counts.repeated") == 0
        visit.until("voicechart.trace.records.length > 3 && voicechart.trace.records[0].number === 1")
        assert visit.problems == []


def test_the_browsers_own_event_source_and_curl_come_back_by_the_last_event_id(
    chromium: Browser, server: Server
) -> None:
    with CuttableWire(server.address) as wire, visiting(chromium, wire.address, path="/openapi.json") as visit:
        visit.js(
            "(() => { window.got = []; window.source = new EventSource('/api/events');"
            " source.onmessage = (m) => got.push([m.lastEventId, JSON.parse(m.data).type]); })()"
        )
        visit.until("got.length === 1 && got[0][1] === 'snapshot'")
        httpx.post(f"{server.address}/api/chat", json={"text": "hello"})
        visit.until("got.some(([, type]) => type === 'run.terminal')")
        wire.cut()
        httpx.post(f"{server.address}/api/chat", json={"text": "hello again"})
        wire.mend()
        visit.until("got.filter(([, type]) => type === 'run.terminal').length === 2")
        got: list[tuple[str, str]] = visit.js("got")
    assert [kind for _, kind in got].count("snapshot") == 1
    cursors = [tuple(map(int, cursor.split(":"))) for cursor, _ in got]
    assert cursors == sorted(set(cursors))
    if CURL is None:
        return
    asked = [CURL, "-sN", "-H", f"Last-Event-ID: {got[0][0]}", f"{server.address}/api/events?follow=false"]
    said = subprocess.run(asked, capture_output=True, check=True, timeout=20).stdout.decode()
    ids = [line[4:] for line in said.splitlines() if line.startswith("id: ")]
    assert set(ids) >= {cursor for cursor, kind in got[1:] if kind != "text.delta"}


# -- speaking ------------------------------------------------------------------------------------------------------


def test_captions_are_revised_and_what_was_heard_is_less_than_what_was_written(
    chromium: Browser, portal: BlockingPortal, spoken: SpokenSite
) -> None:
    with visiting(chromium, spoken.address) as visit:
        visit.until("voicechart.lit.includes('ready')")
        visit.js(
            "(() => { window.revised = []; new MutationObserver(() => {"
            " const found = document.querySelector('#caption-text ins.revised');"
            " if (found) revised.push([document.querySelector('#caption-text del').textContent, found.textContent]); })"
            ".observe(document.querySelector('#caption'), {subtree: true, childList: true}); })()"
        )
        portal.call(spoken.rehearsal.speak, 700)
        visit.until("voicechart.state.entries.at(-1)?.text === a", FORECAST)
        visit.until("document.querySelector('.part.now') && document.querySelector('.part.ahead')")
        assert visit.js("revised.some(([was, is]) => was === 'listen' && is === 'Lisbon')")
        assert visit.page.is_visible("#legend")
        assert "running" in visit.page.inner_text("#tasks")
        assert "weather" in visit.page.inner_text(".tools")
        portal.call(spoken.rehearsal.until_heard, 1)
        portal.call(spoken.rehearsal.speak, 500)
        at_rest(visit, 2)
        parts: list[list[str]] = visit.js(
            "[...document.querySelectorAll('.assistant')[0].querySelectorAll('.part')]"
            ".map((one) => [one.className.split(' ')[1], one.textContent])"
        )
        assert [fate for fate, _ in parts] == ["heard", "never"]
        heard, never = (text for _, text in parts)
        assert heard + never == FORECAST
        assert FORECAST.index("Tomorrow") <= len(heard) < FORECAST.index("I have put")
        cut = visit.js("document.querySelectorAll('.assistant')[0].querySelector('.cut').textContent")
        assert "interrupted by speech" in cut
        visit.until("document.querySelector('#caption').hidden")
        equals_the_server(visit, spoken.address)
        assert visit.problems == []


def test_announcements_are_shown_and_private_ones_never_reach_the_page(
    chromium: Browser, portal: BlockingPortal, spoken: SpokenSite
) -> None:
    with visiting(chromium, spoken.address) as visit:
        visit.until("voicechart.lit.includes('ready')")
        visit.js(
            "(() => { window.got = []; window.source = new EventSource('/api/events');"
            " source.onmessage = (m) => got.push(m.data); })()"
        )
        visit.until("got.length === 1")
        session = spoken.rehearsal.session
        portal.call(lambda: session.say("The test results are in.", record=False) and None)
        portal.call(spoken.rehearsal.until, "delivery.recorded", 1)
        portal.call(lambda: session.say("Your tea is ready.") and None)
        portal.call(spoken.rehearsal.until, "delivery.recorded", 2)
        visit.until("document.querySelector('.announced .said')?.textContent === 'Your tea is ready.'")
        visit.until("got.filter((one) => one.includes('\"delivery.recorded\"')).length === 2")
        equals_the_server(visit, spoken.address)
        seen = "".join(visit.js("got"))
        assert "test results" not in seen + visit.page.content()
        assert set(visit.js("got.slice(1).map((one) => JSON.parse(one).visibility)")) <= {"user", "speech"}
        # Its cursor works across what it may not see.
        with visit.page.expect_request(lambda request: "/api/events" in request.url and "after=" in request.url):
            visit.js("dispatchEvent(new Event('online'))")
        visit.until("document.querySelector('#status').dataset.state === 'open'")
        equals_the_server(visit, spoken.address)
        assert visit.js("voicechart.counts.snapshots") == 1
        assert visit.problems == []


async def interrupted_conversation() -> list[Json]:
    rehearsal = SpokenRehearsal()
    async with rehearsal.running():
        await rehearsal.speak(700)
        await rehearsal.until_heard(1)
        await rehearsal.speak(500)
        await rehearsal.until("delivery.recorded", 2)
        rehearsal.let_go.set()
    return [event.as_json() for event in rehearsal.events]


def test_the_page_folds_as_the_server_does(chromium: Browser, server: Server) -> None:
    clock = MockClock(autojump_threshold=0)
    events = anyio.run(interrupted_conversation, backend="trio", backend_options={"clock": clock})
    assert len({event["type"] for event in events}) > 20
    # The same again with everything of half the events left out: what is told of the unknown changes nothing.
    events += [{**event, "turn_id": None} for event in events[::2]]
    events += [
        {"type": "thought.updated", "payload": {}},
        {"type": "constructor", "payload": {}},
        {"type": "tool.progress", "call_id": "c1", "payload": {"message": "half", "fraction": 0.5}},
        {"type": "stream.error", "payload": {"error": {"code": "c", "message": "m"}}},
        {"type": "turn.dropped", "turn_id": events[-1].get("turn_id"), "payload": {"reason": "r"}},
        {"type": "session.closed", "payload": {"reason": "stopped", "error": None}},
    ]
    events += [
        {"type": "response.started", "response_id": f"r{number}", "payload": {"attempt": 1}} for number in range(70)
    ]
    long = "\N{GRINNING FACE}" * 90_000
    events += [
        {"type": "text.delta", "response_id": f"r{number}", "payload": {"text": long}} for number in (66, 67, 68)
    ]
    state, states = empty_state(), list[Json]()
    for event in events:
        state = fold(state, event)
        states.append(state)
    with visiting(chromium, server.address, path="/openapi.json") as visit:
        folded = visit.page.evaluate(
            "async (events) => { const { emptyState, fold } = await import('/page/fold.js'); let state = emptyState();"
            " return events.map((event) => (state = fold(state, event))); }",
            events[:-3],
        )
        assert folded == states[:-3]
        last = visit.page.evaluate(
            "async ([state, events]) => { const { fold } = await import('/page/fold.js');"
            " return events.reduce(fold, state); }",
            [states[-4], events[-3:]],
        )
        assert last == states[-1]


# -- the trace -----------------------------------------------------------------------------------------------------


def test_the_trace_is_stepped_through_explained_and_exported(
    chromium: Browser, portal: BlockingPortal, spoken: SpokenSite, tmp_path: Path
) -> None:
    with visiting(chromium, spoken.address) as visit:
        visit.until("voicechart.lit.includes('ready')")
        visit.say("请给我讲一个故事，好吗？")  # noqa: RUF001 - Chinese has marks of its own
        at_rest(visit)
        assert visit.js("voicechart.state.entries[1].text") == CHINESE
        visit.page.click("#step-back")
        visit.page.focus("#records")
        visit.page.press("#records", "Home")
        visit.until("document.querySelector('#chart-mode').textContent === 'before the first macrostep'")
        assert visit.js("voicechart.lit.includes('opening')")
        visit.page.press("#records", "ArrowDown")
        visit.until("voicechart.lit.includes('ready') && voicechart.lit.includes('generation_idle')")
        visit.page.click(".record:has-text('text submitted')")
        visit.until("document.querySelector('#details').textContent.includes('Input turn went from idle to committed')")
        for part in ("Event", "TextSubmitted", "Lines that were tried", "Actions", "StoreUserTurn"):
            assert part in visit.page.inner_text("#details")
        rows: list[int] = visit.js("voicechart.trace.current.taken.map((one) => one.row)")
        assert visit.js("[...document.querySelectorAll('.taken')].length") > 0
        assert all(visit.js("document.querySelectorAll(`.taken.row_${a}`).length", row) for row in rows)
        label = visit.page.locator("#picture g.node[aria-label*='playback_drained']").first
        label.focus()
        visit.page.keyboard.press("Enter")
        visit.until("voicechart.trace.current.event === 'playback_drained'")
        visit.page.press("#records", "Home")
        visit.page.click("#play")
        visit.until("voicechart.trace.isPlaying && voicechart.trace.place > 1")
        visit.page.click("#play")
        assert not visit.js("voicechart.trace.isPlaying || voicechart.trace.isLive")
        visit.page.click("#live")
        visit.until("document.querySelector('#live').getAttribute('aria-pressed') === 'true'")
        with visit.page.expect_download() as downloading:
            visit.page.click("#export")
        downloading.value.save_as(tmp_path / "trace.jsonl")
        header, *records = map(json.loads, (tmp_path / "trace.jsonl").read_text().splitlines())
        assert header["format"] == "voicechart-trace"
        assert [record["number"] for record in records] == visit.js("voicechart.trace.records.map((one) => one.number)")
        assert visit.problems == []


def test_a_server_that_keeps_its_trace_and_a_conversation_that_ends_are_told_in_words(
    chromium: Browser, portal: BlockingPortal
) -> None:
    options = WebOptions(port=0, show_chart=False)
    with (
        portal.wrap_async_context_manager(site(options=options)) as here,
        visiting(chromium, here.address, path="/#aside") as visit,
    ):
        visit.until("document.querySelector('#status').dataset.state === 'open'")
        visit.say("hello")
        at_rest(visit)
        visit.until("document.querySelector('#picture').textContent.includes('does not show how its chart moves')")
        aside = here.conversations.find("aside")
        assert aside is not None
        portal.call(aside.session.close, "idle")
        visit.until("document.querySelector('#status').textContent === 'This conversation has ended'")
        assert "The session has ended: idle." in visit.page.inner_text("#notices")
        assert visit.page.is_disabled("#send")
        visit.until("document.querySelector('#picker').selectedOptions[0].textContent === 'aside (in writing, ended)'")
        visit.page.select_option("#picker", "front")
        visit.until("document.querySelector('#status').textContent === 'Connected'")
        assert visit.page.is_enabled("#send")
        assert [problem for problem in visit.problems if "403" not in problem and "404" not in problem] == []


# -- the token -----------------------------------------------------------------------------------------------------


def test_a_token_is_asked_for_once_and_stands_in_no_address(chromium: Browser, portal: BlockingPortal) -> None:
    options = WebOptions(port=0, token="a long and random text")
    with (
        portal.wrap_async_context_manager(spoken_site(options)) as site,
        visiting(chromium, site.address) as visit,
    ):
        addresses: list[str] = []
        visit.page.on("request", lambda request: addresses.append(request.url))
        visit.page.wait_for_selector("#token[open]")
        visit.page.fill("#token-text", "a guess")
        visit.page.press("#token-text", "Enter")
        visit.until("document.querySelector('#token-problem').textContent !== ''")
        visit.page.fill("#token-text", "a long and random text")
        visit.page.press("#token-text", "Enter")
        visit.until("voicechart.lit?.includes('ready')")
        assert not visit.page.is_visible("#token")
        visit.page.reload()
        visit.until("document.querySelector('#status').textContent === 'Connected'")
        assert visit.js("document.cookie") == ""
        assert not any("random" in address for address in addresses)
        refused = [problem for problem in visit.problems if "401" not in problem]
        assert refused == []
