"""Where text may be cut: a scan that remembers what is open, and looks ahead only as far as it must.

The scan goes once over the text, character by character, whatever pieces it comes in; where the next characters decide,
it waits for them. So the cuts depend on the text alone, never on how it was chunked.

Nothing is cut inside a *protected* construct: fenced and inline code, formulas, links, tags and the blocks that a tag
opens, a JSON object, a URL. A cut comes after a sentence, a paragraph, a list item or a heading; the first unit of a
reply may end with a clause, so that speech begins early; a long run without an end is cut at its last clause.
"""

from __future__ import annotations

import re
from enum import Enum, auto

CJK_ENDERS = "。！？"  # noqa: RUF001 - these are the marks themselves
LATIN_ENDERS = ".!?…"
CJK_CLAUSES = "，、；："  # noqa: RUF001
LATIN_CLAUSES = ",;:"
CLOSERS = "\"'”’)]»」』*_"

FIRST_CLAUSE_CHARS = 32
"""The first unit may end at a clause of at least this many characters: two seconds, in which the next one is made."""
SENTENCE_CHARS = 12
"""A shorter sentence goes together with the next one ("Yes. I will.")."""
LONG_CHARS = 240
"""A run longer than this without a sentence end is cut at its last clause, or else its last space."""
LOOKAHEAD = 12
"""Characters after a line break that tell a list, a heading or a fence from running text."""

_ABBREVIATIONS = frozenset(
    word
    for words in (
        "mr mrs ms dr prof st sr jr vs etc e.g i.e cf no nos vol fig eq approx dept est inc ltd co corp",
        "u.s u.k a.m p.m ph.d b.c a.d jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun",
    )
    for word in words.split()
)
_LAST_WORD = re.compile(r"([^\W_]+(?:\.[^\W_]+)*)$")
_NEW_BLOCK = re.compile(r"[ \t]*(?:\n|#{1,6} |[-*+] |\d{1,3}[.)] |```|~~~|>|\||\{)")
_URL_START = re.compile(r"(?:https?://|www\.|mailto:)", re.IGNORECASE)
_BLOCK_TAGS = ("think", "thinking", "reasoning", "tool_call", "tool", "tts")


class _Mode(Enum):
    PLAIN = auto()
    FENCE = auto()
    CODE = auto()
    FORMULA = auto()
    LINK = auto()
    TAG = auto()
    BLOCK = auto()
    JSON = auto()
    URL = auto()


class _Waiting(Exception):
    """The next characters decide, and they are not here yet."""


class Scanner:
    """Feed text; `next_end` tells where the next unit ends, in characters from the start of what is pending."""

    def __init__(self) -> None:
        self._text = ""
        self._place = 0
        self._mode = _Mode.PLAIN
        self._closing = ""
        self._depth = 0
        self._in_string = False
        self._last_clause: int | None = None
        self._last_space: int | None = None
        self._final = False
        self._is_first = True
        self._plain_since = 0

    @property
    def pending(self) -> str:
        """What has not been cut off yet."""
        return self._text

    def feed(self, text: str) -> None:
        """Add text."""
        self._text += text

    def finish(self) -> None:
        """No more text will come: what is undecided is decided now."""
        self._final = True

    def take(self, end: int) -> str:
        """Cut off everything before `end`."""
        source, self._text = self._text[:end], self._text[end:]
        self._place = max(0, self._place - end)
        self._last_clause = self._last_space = None
        self._plain_since = 0
        self._is_first = False
        return source

    def next_end(self) -> int | None:
        """Where the next unit ends; None while nothing is safe."""
        try:
            while self._place < len(self._text):
                end = self._step()
                if end is not None:
                    return end
        except _Waiting:
            return None
        return None

    # -- one step --------------------------------------------------------------------------------------------------

    def _step(self) -> int | None:
        """Look at the next character; returns a cut if there is one behind it."""
        if self._mode is _Mode.PLAIN:
            return self._plain()
        if self._mode is _Mode.JSON:
            self._json()
        elif self._mode is _Mode.URL:
            self._url()
        elif self._mode is _Mode.LINK:
            self._link()
        else:
            self._until_closing()
        return None

    def _plain(self) -> int | None:
        place, text = self._place, self._text
        character = text[place]
        if self._opens(character):
            return None
        self._place = place + 1
        if character == "\n":
            return self._line_break(place)
        if character in LATIN_ENDERS or character in CJK_ENDERS:
            return self._sentence_end(place)
        if character in LATIN_CLAUSES or character in CJK_CLAUSES:
            return self._clause_end(place)
        if character.isspace():
            self._last_space = place + 1
        return self._too_long()

    def _ahead(self, place: int, count: int = 1) -> str:
        """`count` characters from `place`, waiting for them unless the text is over."""
        if place + count > len(self._text) and not self._final:
            raise _Waiting
        return self._text[place : place + count]

    # -- ends ------------------------------------------------------------------------------------------------------

    def _line_break(self, place: int) -> int | None:
        """A line break ends a unit where a new block begins."""
        self._place = place
        ahead = self._ahead_of_line(place + 1)
        self._place = place + 1
        self._last_space = place + 1
        before = self._text[: place + 1]
        line = before[before.rfind("\n", 0, place) + 1 : place]
        is_own_block = bool(_NEW_BLOCK.match(line + " ")) and bool(line.strip())
        if (_NEW_BLOCK.match(ahead) or is_own_block) and before.strip():
            return place + 1
        return self._too_long()

    def _ahead_of_line(self, place: int) -> str:
        """Enough of the next line to know what it begins."""
        known = self._text[place : place + LOOKAHEAD]
        if len(known) < LOOKAHEAD and "\n" not in known and not self._final:
            raise _Waiting
        return known if known else "\n"

    def _sentence_end(self, place: int) -> int | None:
        self._place = place
        end = place + 1
        while (following := self._ahead(end)) and (following in LATIN_ENDERS + CJK_ENDERS or following in CLOSERS):
            end += 1
        trails_off = self._text[place:end].startswith(("...", "…"))
        goes_on = trails_off and self._ahead(end, 2)[1:].islower()
        # Everything that decides has been seen; nothing waits from here on.
        self._place = end
        is_cjk = self._text[place] in CJK_ENDERS
        if not is_cjk and following and not following.isspace():
            return self._too_long()
        if not is_cjk and len(self._text[:end].strip()) < SENTENCE_CHARS:
            return None
        if goes_on or (self._text[place] == "." and self._is_abbreviation(place)):
            return None
        return end

    def _is_abbreviation(self, place: int) -> bool:
        word = _LAST_WORD.search(self._text[:place])
        if word is None:
            return False
        name = word.group(1)
        line_start = self._text.rfind("\n", 0, word.start()) + 1
        is_list_number = name.isdigit() and not self._text[line_start : word.start()].strip()
        is_initial = len(name) == 1 and name.isalpha() and name.isupper() and name != "I"
        return is_list_number or is_initial or name.lower() in _ABBREVIATIONS

    def _clause_end(self, place: int) -> int | None:
        is_cjk = self._text[place] in CJK_CLAUSES
        if not is_cjk:
            self._place = place
            following = self._ahead(place + 1)
            self._place = place + 1
            if following and not following.isspace():
                return self._too_long()
        self._last_clause = place + 1
        length = len(self._text[: place + 1].strip())
        if self._is_first and length >= (FIRST_CLAUSE_CHARS // 3 if is_cjk else FIRST_CLAUSE_CHARS):
            return place + 1
        return self._too_long()

    def _too_long(self) -> int | None:
        if self._place - self._plain_since <= LONG_CHARS:
            return None
        return self._last_clause or self._last_space

    # -- protected constructs --------------------------------------------------------------------------------------

    def _opens(self, character: str) -> bool:
        """Enter a protected construct if one begins here."""
        place = self._place
        match character:
            case "`" | "~":
                return self._opens_code(place, character)
            case "$" | "\\":
                return self._opens_formula(place, character)
            case "[":
                return self._enter(_Mode.LINK, place + 1)
            case "<":
                return self._opens_tag(place)
            case "{":
                return self._opens_json(place)
            case "h" | "H" | "w" | "W" | "m" | "M":
                return self._opens_url(place)
            case _:
                return False

    def _opens_json(self, place: int) -> bool:
        """`{"`: no sentence has that."""
        following = self._ahead(place + 1)
        return following == '"' and self._enter(_Mode.JSON, place)

    def _enter(self, mode: _Mode, place: int, closing: str = "") -> bool:
        self._mode, self._closing, self._place = mode, closing, place
        self._depth, self._in_string = 0, False
        return True

    def _leave(self, place: int) -> None:
        self._mode, self._place = _Mode.PLAIN, place
        self._plain_since = place

    def _begins_line(self, place: int) -> bool:
        return not self._text[self._text.rfind("\n", 0, place) + 1 : place].strip()

    def _opens_code(self, place: int, mark: str) -> bool:
        run = 0
        while self._ahead(place + run) == mark:
            run += 1
        if run >= 3 and self._begins_line(place):
            return self._enter(_Mode.FENCE, place + run, "\n" + mark * run)
        if mark == "~":
            return False
        return self._enter(_Mode.CODE, place + run, mark * run)

    def _opens_formula(self, place: int, character: str) -> bool:
        following = self._ahead(place + 1)
        if character == "\\":
            if following in ("(", "["):
                return self._enter(_Mode.FORMULA, place + 2, "\\)" if following == "(" else "\\]")
            return False
        if following == "$":
            return self._enter(_Mode.FORMULA, place + 2, "$$")
        if not following or following.isspace() or following.isdigit():
            return False
        return self._enter(_Mode.FORMULA, place + 1, "$")

    def _opens_tag(self, place: int) -> bool:
        following = self._ahead(place + 1)
        if not (following.isalpha() or following == "/"):
            return False
        return self._enter(_Mode.TAG, place + 1, ">")

    def _opens_url(self, place: int) -> bool:
        if place and self._text[place - 1].isalnum():
            return False
        ahead = self._text[place : place + 8]
        if _URL_START.match(ahead):
            return self._enter(_Mode.URL, place)
        could_be = any(start.startswith(ahead.lower()) for start in ("http://", "https://", "www.", "mailto:"))
        if could_be and not self._final and len(ahead) < 8:
            raise _Waiting
        return False

    def _until_closing(self) -> None:
        """Code, formulas, tags: everything up to the closing mark; a paragraph break ends what was never closed."""
        text, closing = self._text, self._closing
        found = text.find(closing, self._place)
        bound = -1 if self._mode in (_Mode.FENCE, _Mode.BLOCK) else text.find("\n\n", self._place)
        if bound >= 0 and (found < 0 or bound < found):
            self._leave(bound)
        elif found >= 0:
            self._closed(found, found + len(closing))
        elif self._final:
            self._leave(len(text))
        else:
            # The closing mark, or the paragraph break, may have begun already.
            self._place = max(self._place, len(text) - max(len(closing), 2) + 1)
            raise _Waiting

    def _closed(self, found: int, end: int) -> None:
        if self._mode is not _Mode.TAG:
            self._leave(end)
            return
        tag = self._text[self._text.rfind("<", 0, found) + 1 : found]
        name = re.match(r"[a-zA-Z_]+", tag)
        if name is not None and name.group().lower() in _BLOCK_TAGS and not tag.endswith("/"):
            self._enter(_Mode.BLOCK, end, f"</{name.group()}>")
        else:
            self._leave(end)

    def _link(self) -> None:
        """`[text](target)`: closed after the target, or after the text when no target follows."""
        text = self._text
        found = text.find("]", self._place)
        bound = text.find("\n\n", self._place)
        if bound >= 0 and (found < 0 or bound < found):
            self._leave(bound)
            return
        if found < 0:
            if not self._final:
                raise _Waiting
            self._leave(len(text))
            return
        if self._ahead(found + 1) != "(":
            self._leave(found + 1)
            return
        end = text.find(")", found + 2)
        if end < 0 and not self._final:
            raise _Waiting
        self._leave(end + 1 if end >= 0 else len(text))

    def _json(self) -> None:
        """A balanced object, strings respected."""
        text = self._text
        while self._place < len(text):
            character = text[self._place]
            self._place += 1
            if self._in_string:
                if character == "\\":
                    self._place += 1
                elif character == '"':
                    self._in_string = False
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    self._leave(self._place)
                    return

    def _url(self) -> None:
        """Up to white space; punctuation at its end belongs to the sentence."""
        text, place = self._text, self._place
        while place < len(text) and not text[place].isspace() and text[place] not in '<>"，。！？；、':  # noqa: RUF001
            place += 1
        if place >= len(text) and not self._final:
            raise _Waiting
        while place > self._place + 1 and text[place - 1] in ".,;:!?)]}'*_":
            place -= 1
        self._leave(place)
