"""A real browser on the page, and a wire to it that can be cut. Needs Playwright, and a Chromium of the system."""

from __future__ import annotations

import os
import re
import shutil
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NOT_INSTALLED = f"no browser is installed ({', '.join(NAMES)}): what the page does in a real one is left out"
PATIENCE_MS = 20_000
_UNREACHABLE = re.compile(r"net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING)")


def find_browser() -> str | None:
    """The first one there is."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def browser() -> Generator[Browser]:
    """A headless one, for as long as the block."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=find_browser(),
            args=["--disable-gpu", *(["--no-sandbox"] if is_root else [])],
            headless=True,
        )
        yield running
        running.close()


class Visit:
    """One page that is open, and whatever it should not have done."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.problems: list[str] = []
        """Errors and warnings of the page, and requests to anywhere else."""
        self.lost = 0
        """How often the server did not answer."""
        self._host = urlsplit(address).netloc
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._note_message)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("request", self._note_request)

    def until(self, expression: str, argument: object = None) -> None:
        """Until a JavaScript expression is true; `argument` is what it calls `a`."""
        self.page.wait_for_function(f"(a) => Boolean({expression})", arg=argument)

    def js(self, expression: str, argument: object = None) -> Any:  # noqa: ANN401 - whatever it is
        """The value of a JavaScript expression."""
        return self.page.evaluate(f"(a) => ({expression})", argument)

    def say(self, text: str) -> None:
        """Write a message and send it by Enter."""
        self.page.fill("#message", text)
        self.page.press("#message", "Enter")

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        if _UNREACHABLE.search(message.text):
            self.lost += 1
        else:
            self.problems.append(f"{message.type}: {message.text}")

    def _note_request(self, request: Request) -> None:
        if not request.url.startswith("blob:") and urlsplit(request.url).netloc != self._host:
            self.problems.append(f"request: {request.url}")


@contextmanager
def visiting(
    browser: Browser,
    address: str,
    *,
    path: str = "/",
    width: int = 1_280,
    height: int = 800,
    scheme: str = "light",
) -> Generator[Visit]:
    """Look at the page in a browser that knows nothing of other visits."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
        accept_downloads=True,
    )
    visit = Visit(context.new_page(), address)
    visit.page.goto(f"{address}{path}")
    yield visit
    context.close()


class CuttableWire:
    """Forwards connections of its own port to another one, until it is cut. Use it as a context manager."""

    def __init__(self, address: str) -> None:
        port = urlsplit(address).port
        assert port is not None
        self._to = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._is_cut = False
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> CuttableWire:
        self._begin(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        # Closing alone does not wake a thread that accepts.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def cut(self) -> None:
        """Every connection breaks, and new ones break at once."""
        with self._lock:
            self._is_cut = True
            for end in self._open:
                _shut(end)
            self._open.clear()

    def mend(self) -> None:
        """New connections hold again."""
        with self._lock:
            self._is_cut = False

    def _begin(self, run: Callable[..., None], *arguments: socket.socket) -> threading.Thread:
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._is_cut:
                    near.close()
                    continue
                far = socket.create_connection(self._to)
                self._open += [near, far]
            self._begin(self._forward, near, far)

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        with near, far:
            back = self._begin(_pump, far, near)
            _pump(near, far)
            back.join()
            with self._lock:
                self._open = [end for end in self._open if end not in (near, far)]


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    _shut(source)
    _shut(target)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
