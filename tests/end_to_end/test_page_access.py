"""The page is for everybody: on a phone and on a desktop, dark and light, by keyboard, and without seeing it."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from playwright.sync_api import Browser

from voicechart.adapters.testing.browser import NOT_INSTALLED, Visit, browser, find_browser, visiting
from voicechart.adapters.testing.spoken_site import SpokenSite, spoken_site

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_browser() is None, reason=NOT_INSTALLED)]
SIZES = {"phone": (390, 844), "tablet": (820, 1_180), "desktop": (1_280, 800)}
LONG = (
    "Donaudampfschifffahrtsgesellschaft" * 8 + " https://voicechart.example/" + "a" * 200 + "\n" + "从前有一座山" * 30
)

CONTROLS = """() => [...document.querySelectorAll('a[href], button, input, select, textarea, progress, [role=button],'
  + ' [role=listbox], [role=region], [role=group]')]
  .filter((one) => one.checkVisibility())
  .filter((one) => !(one.getAttribute('aria-label') || one.labels?.[0]?.textContent
    || (one.matches('a, button') && one.textContent.trim()))?.trim())
  .map((one) => one.outerHTML.slice(0, 120))"""

CONTRASTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (text) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
  const ratio = (one, other) => {
    const [low, high] = [light(rgba(one)), light(rgba(other))].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (rgba(colour)[3] === 255) return colour;
    }
    return 'white';
  };
  const texts = [...document.querySelectorAll('body *')].filter((one) => one.checkVisibility()
    && !one.closest('svg, .unseen, noscript') && [...one.childNodes].some((node) => node.nodeType === 3
    && node.data.trim()));
  const found = texts.map((one) => [ratio(getComputedStyle(one).color, ground(one)), one.outerHTML.slice(0, 90)]);
  const holder = document.querySelector('#message');
  found.push([ratio(getComputedStyle(holder, '::placeholder').color, ground(holder)), 'placeholder']);
  for (const state of document.querySelectorAll('#picture g.node[id^=state_]')) {
    const shape = getComputedStyle(state.querySelector('path')).fill;
    found.push([ratio(getComputedStyle(state.querySelector('text')).fill, shape), state.id]);
  }
  for (const label of document.querySelectorAll('#picture g.node[class*=row_]')) {
    const shape = getComputedStyle(label.querySelector('polygon')).fill;
    for (const text of label.querySelectorAll('text')) {
      found.push([ratio(getComputedStyle(text).fill, shape), text.textContent]);
    }
  }
  return found;
}"""

OVERFLOWS = """() => [document.scrollingElement, ...document.querySelectorAll('.panel, #scroll, #records, #details,'
  + ' #composer, .bar, .said')].filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0)
  .map((one) => `${one.id || one.className}: ${one.scrollWidth} > ${one.clientWidth}`)"""


@pytest.fixture(scope="module")
def chromium() -> Generator[Browser]:
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def portal() -> Generator[BlockingPortal]:
    with start_blocking_portal("asyncio") as running:
        yield running


@pytest.fixture(scope="module")
def spoken(portal: BlockingPortal) -> Generator[SpokenSite]:
    """A conversation with everything in it: tools, a task, an interruption, an announcement, long words, Chinese."""
    with portal.wrap_async_context_manager(spoken_site()) as site:
        rehearsal = site.rehearsal
        portal.call(rehearsal.speak, 800)
        portal.call(rehearsal.until_heard, 1)
        portal.call(rehearsal.speak, 400)
        portal.call(rehearsal.until, "delivery.recorded", 2)
        portal.call(lambda: rehearsal.session.say("Your tea is ready.") and None)
        portal.call(rehearsal.until, "delivery.recorded", 3)
        portal.call(rehearsal.say, LONG)
        portal.call(rehearsal.until, "delivery.recorded", 4)
        yield site


def looked_at(visit: Visit, view: str) -> None:
    """Where there is room for one panel only, bring it to the front."""
    button = visit.page.locator(f"nav.views button[data-shows={view}]")
    if button.is_visible():
        button.click()


@pytest.mark.parametrize(
    ("size", "scheme"),
    [("phone", "light"), ("phone", "dark"), ("tablet", "light"), ("desktop", "light"), ("desktop", "dark")],
)
def test_everything_can_be_read_has_a_name_and_fits(
    chromium: Browser, spoken: SpokenSite, size: str, scheme: str
) -> None:
    width, height = SIZES[size]
    with visiting(chromium, spoken.address, width=width, height=height, scheme=scheme) as visit:
        visit.until("voicechart.lit.includes('ready') && document.querySelectorAll('.entry').length === 7")
        dark: bool = visit.js("matchMedia('(prefers-color-scheme: dark)').matches")
        assert dark == (scheme == "dark")
        for view in ("conversation", "trace", "chart"):
            looked_at(visit, view)
            if view == "trace":
                visit.page.click(".record:has-text('transcript updated')")
                visit.until("document.querySelector('#details .guard') !== null")
            assert visit.page.evaluate(OVERFLOWS) == []
            assert visit.page.evaluate(CONTROLS) == []
            contrasts: list[tuple[float, str]] = visit.page.evaluate(CONTRASTS)
            assert len(contrasts) > 60
            assert [found for found in contrasts if found[0] < 4.5] == []
        assert visit.problems == []


def test_the_theme_is_chosen_and_kept(chromium: Browser, spoken: SpokenSite) -> None:
    with visiting(chromium, spoken.address) as visit:
        visit.until("voicechart.lit.includes('ready')")
        ground = "getComputedStyle(document.documentElement).backgroundColor"
        light: str = visit.js(ground)
        visit.page.click("#theme")
        assert visit.js(ground) == light
        visit.page.click("#theme")
        dark: str = visit.js(ground)
        assert dark != light
        visit.page.reload()
        assert visit.js(ground) == dark


def test_the_keyboard_reaches_everything_and_focus_is_seen(chromium: Browser, spoken: SpokenSite) -> None:
    with visiting(chromium, spoken.address) as visit:
        visit.until("voicechart.lit.includes('ready')")
        reached: list[str] = []
        for _ in range(40):
            visit.page.keyboard.press("Tab")
            reached.append(visit.js("document.activeElement.id || document.activeElement.className.toString()"))
            if reached[-1] == "details":
                break
            outline: str = visit.js("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", reached[-1]
        wanted = ["skip", "picker", "begin", "theme", "scroll", "message", "send", "zoom-fit", "only-changes", "export"]
        wanted += ["step-back", "place", "live", "records", "details"]
        assert [name for name in reached if name in wanted] == wanted
        # Of the many lines in the picture one is in the order of focus, and arrow keys go on from it.
        assert len(reached) < 25
        visit.page.focus("#picture svg [role=button][tabindex='0']")
        first: str = visit.js("document.activeElement.getAttribute('aria-label')")
        visit.page.keyboard.press("ArrowRight")
        assert visit.js("document.activeElement.getAttribute('aria-label')") not in (first, None)


def test_landmarks_and_live_regions_are_few_and_say_whole_sentences(
    chromium: Browser, portal: BlockingPortal, spoken: SpokenSite
) -> None:
    with visiting(chromium, spoken.address, path="/#aside") as visit:
        visit.until("document.querySelector('#status').dataset.state === 'open'")
        visit.js(
            "(() => { window.told = []; new MutationObserver((all) => all.forEach((one) => one.addedNodes.forEach("
            "(node) => told.push(node.textContent)))).observe(document.querySelector('#announcer'), {childList: true});"
            " })()"
        )
        visit.say("hello")
        visit.until("told.length > 0")
        assert visit.js("told") == ["Assistant: All right, I stop."]
        assert visit.js("[...document.querySelectorAll('[aria-live], [role=log]')].map((one) => one.id)") == [
            "announcer"
        ]
        for landmark in ("header", "nav[aria-label]", "main", "main > section[aria-labelledby] h2"):
            assert visit.page.locator(landmark).count() > 0
        assert visit.js("document.documentElement.lang") == "en"


def test_nothing_is_told_by_colour_alone(chromium: Browser, spoken: SpokenSite) -> None:
    with visiting(chromium, spoken.address) as visit:
        visit.until("document.querySelector('.part.never') !== null && voicechart.lit.includes('ready')")
        line = "getComputedStyle(document.querySelector(a)).textDecorationLine"
        assert visit.js(line, ".part.never") == "line-through"
        assert visit.js(line, ".legend .now") == visit.js(line, ".legend .ahead") == "underline"
        assert "Not heard:" in visit.js("document.querySelector('.part.never').previousElementSibling.textContent")
        width = "parseFloat(getComputedStyle(document.querySelector(a)).strokeWidth)"
        assert visit.js(width, "#state_ready > path") > visit.js(width, "#state_opening > path")
        assert "ready" in visit.page.inner_text("#regions")
