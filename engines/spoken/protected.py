"""What must not be cut: code, formulas, links, tags and their blocks, JSON, URLs - and the scan through them."""

from __future__ import annotations

import re
from enum import Enum, auto

_URL_START = re.compile(r"(?:https?://|www\.|mailto:)", re.IGNORECASE)
_BLOCK_TAGS = ("think", "thinking", "reasoning", "tool_call", "tool", "tts")


class Mode(Enum):
    PLAIN = auto()
    FENCE = auto()
    CODE = auto()
    FORMULA = auto()
    LINK = auto()
    TAG = auto()
    BLOCK = auto()
    JSON = auto()
    URL = auto()


class Waiting(Exception):
    """The next characters decide, and they are not here yet."""


class ProtectedScan:
    """One pass over a growing text, and the construct that is open at its place."""

    def __init__(self) -> None:
        self.text = ""
        self.place = 0
        self.mode = Mode.PLAIN
        self.final = False
        """No more text will come: what is undecided is decided now."""
        self.plain_since = 0
        """Where the running text began that the scan is in."""
        self._closing = ""
        self._depth = 0
        self._in_string = False

    def ahead(self, place: int, count: int = 1) -> str:
        """`count` characters from `place`, waiting for them unless the text is over."""
        if place + count > len(self.text) and not self.final:
            raise Waiting
        return self.text[place : place + count]

    def opens(self, character: str) -> bool:
        """Enter a protected construct if one begins here."""
        place = self.place
        match character:
            case "`" | "~":
                return self._opens_code(place, character)
            case "$" | "\\":
                return self._opens_formula(place, character)
            case "[":
                return self._enter(Mode.LINK, place + 1)
            case "<":
                return self._opens_tag(place)
            case "{":
                return self._opens_json(place)
            case "h" | "H" | "w" | "W" | "m" | "M":
                return self._opens_url(place)
            case _:
                return False

    def _enter(self, mode: Mode, place: int, closing: str = "") -> bool:
        self.mode, self._closing, self.place = mode, closing, place
        self._depth, self._in_string = 0, False
        return True

    def _leave(self, place: int) -> None:
        self.mode, self.place = Mode.PLAIN, place
        self.plain_since = place

    def _begins_line(self, place: int) -> bool:
        return not self.text[self.text.rfind("\n", 0, place) + 1 : place].strip()

    def _opens_json(self, place: int) -> bool:
        """`{"`: no sentence has that."""
        following = self.ahead(place + 1)
        return following == '"' and self._enter(Mode.JSON, place)

    def _opens_code(self, place: int, mark: str) -> bool:
        run = 0
        while self.ahead(place + run) == mark:
            run += 1
        if run >= 3 and self._begins_line(place):
            return self._enter(Mode.FENCE, place + run, "\n" + mark * run)
        if mark == "~":
            return False
        return self._enter(Mode.CODE, place + run, mark * run)

    def _opens_formula(self, place: int, character: str) -> bool:
        following = self.ahead(place + 1)
        if character == "\\":
            if following in ("(", "["):
                return self._enter(Mode.FORMULA, place + 2, "\\)" if following == "(" else "\\]")
            return False
        if following == "$":
            return self._enter(Mode.FORMULA, place + 2, "$$")
        if not following or following.isspace() or following.isdigit():
            return False
        return self._enter(Mode.FORMULA, place + 1, "$")

    def _opens_tag(self, place: int) -> bool:
        following = self.ahead(place + 1)
        if not (following.isalpha() or following == "/"):
            return False
        return self._enter(Mode.TAG, place + 1, ">")

    def _opens_url(self, place: int) -> bool:
        if place and self.text[place - 1].isalnum():
            return False
        ahead = self.text[place : place + 8]
        if _URL_START.match(ahead):
            return self._enter(Mode.URL, place)
        could_be = any(start.startswith(ahead.lower()) for start in ("http://", "https://", "www.", "mailto:"))
        if could_be and not self.final and len(ahead) < 8:
            raise Waiting
        return False

    def until_closing(self) -> None:
        """Code, formulas, tags: everything up to the closing mark; a paragraph break ends what was never closed."""
        text, closing = self.text, self._closing
        found = text.find(closing, self.place)
        bound = -1 if self.mode in (Mode.FENCE, Mode.BLOCK) else text.find("\n\n", self.place)
        if bound >= 0 and (found < 0 or bound < found):
            self._leave(bound)
        elif found >= 0:
            self._closed(found, found + len(closing))
        elif self.final:
            self._leave(len(text))
        else:
            # The closing mark, or the paragraph break, may have begun already.
            self.place = max(self.place, len(text) - max(len(closing), 2) + 1)
            raise Waiting

    def _closed(self, found: int, end: int) -> None:
        if self.mode is not Mode.TAG:
            self._leave(end)
            return
        tag = self.text[self.text.rfind("<", 0, found) + 1 : found]
        name = re.match(r"[a-zA-Z_]+", tag)
        if name is not None and name.group().lower() in _BLOCK_TAGS and not tag.endswith("/"):
            self._enter(Mode.BLOCK, end, f"</{name.group()}>")
        else:
            self._leave(end)

    def pass_link(self) -> None:
        """`[text](target)`: closed after the target, or after the text when no target follows."""
        text = self.text
        found = text.find("]", self.place)
        bound = text.find("\n\n", self.place)
        if bound >= 0 and (found < 0 or bound < found):
            self._leave(bound)
            return
        if found < 0:
            if not self.final:
                raise Waiting
            self._leave(len(text))
            return
        if self.ahead(found + 1) != "(":
            self._leave(found + 1)
            return
        end = text.find(")", found + 2)
        if end < 0 and not self.final:
            raise Waiting
        self._leave(end + 1 if end >= 0 else len(text))

    def pass_json(self) -> None:
        """A balanced object, strings respected."""
        text = self.text
        while self.place < len(text):
            character = text[self.place]
            self.place += 1
            if self._in_string:
                if character == "\\":
                    self.place += 1
                elif character == '"':
                    self._in_string = False
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    self._leave(self.place)
                    return

    def pass_url(self) -> None:
        """Up to white space; punctuation at its end belongs to the sentence."""
        text, place = self.text, self.place
        while place < len(text) and not text[place].isspace() and text[place] not in '<>"，。！？；、':  # noqa: RUF001
            place += 1
        if place >= len(text) and not self.final:
            raise Waiting
        while place > self.place + 1 and text[place - 1] in ".,;:!?)]}'*_":
            place -= 1
        self._leave(place)
