"""Where text may be cut: a scan that remembers what is open, and looks ahead only as far as it must.

The scan goes once over the text, character by character, whatever pieces it comes in; where the next characters decide,
it waits for them. So the cuts depend on the text alone, never on how it was chunked.

Nothing is cut inside a *protected* construct: fenced and inline code, formulas, links, tags and the blocks that a tag
opens, a JSON object, a URL. A cut comes after a sentence, a paragraph, a list item or a heading; the first unit of a
reply may end with a clause, so that speech begins early; a long run without an end is cut at its last clause.
"""

from __future__ import annotations

import re

from .protected import Mode, ProtectedScan, Waiting

CJK_ENDERS = "。！？"  # noqa: RUF001 - these are the marks themselves
LATIN_ENDERS = ".!?…"
CJK_CLAUSES = "，、；："  # noqa: RUF001
LATIN_CLAUSES = ",;:"
CLOSERS = "\"'”’)]»」』*_"

FIRST_CLAUSE_CHARS = 32
"""The first unit may end at a clause of at least this many characters: two seconds, in which the next one is made."""
CLAUSE_CHARS = 16
"""A clause of at least this many characters is a unit of its own where clauses are: about a second."""
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


class Scanner(ProtectedScan):
    """Feed text; `next_end` tells where the next unit ends, in characters from the start of what is pending."""

    def __init__(self, *, every_clause: bool = False) -> None:
        """`every_clause`: every unit may end with a clause, not only the first one."""
        super().__init__()
        self._every_clause = every_clause
        self._last_clause: int | None = None
        self._last_space: int | None = None
        self._is_first = True

    @property
    def pending(self) -> str:
        """What has not been cut off yet."""
        return self.text

    def feed(self, text: str) -> None:
        """Add text."""
        self.text += text

    def finish(self) -> None:
        """No more text will come: what is undecided is decided now."""
        self.final = True

    def take(self, end: int) -> str:
        """Cut off everything before `end`."""
        source, self.text = self.text[:end], self.text[end:]
        self.place = max(0, self.place - end)
        self._last_clause = self._last_space = None
        self.plain_since = 0
        self._is_first = False
        return source

    def next_end(self) -> int | None:
        """Where the next unit ends; None while nothing is safe."""
        try:
            while self.place < len(self.text):
                end = self._step()
                if end is not None:
                    return end
        except Waiting:
            return None
        return None

    # -- one step --------------------------------------------------------------------------------------------------

    def _step(self) -> int | None:
        """Look at the next character; returns a cut if there is one behind it."""
        if self.mode is Mode.PLAIN:
            return self._plain()
        if self.mode is Mode.JSON:
            self.pass_json()
        elif self.mode is Mode.URL:
            self.pass_url()
        elif self.mode is Mode.LINK:
            self.pass_link()
        else:
            self.until_closing()
        return None

    def _plain(self) -> int | None:
        place, text = self.place, self.text
        character = text[place]
        if self.opens(character):
            return None
        self.place = place + 1
        if character == "\n":
            return self._line_break(place)
        if character in LATIN_ENDERS or character in CJK_ENDERS:
            return self._sentence_end(place)
        if character in LATIN_CLAUSES or character in CJK_CLAUSES:
            return self._clause_end(place)
        if character.isspace():
            self._last_space = place + 1
        return self._too_long()

    # -- ends ------------------------------------------------------------------------------------------------------

    def _line_break(self, place: int) -> int | None:
        """A line break ends a unit where a new block begins."""
        self.place = place
        ahead = self._ahead_of_line(place + 1)
        self.place = place + 1
        self._last_space = place + 1
        before = self.text[: place + 1]
        line = before[before.rfind("\n", 0, place) + 1 : place]
        is_own_block = bool(_NEW_BLOCK.match(line + " ")) and bool(line.strip())
        if (_NEW_BLOCK.match(ahead) or is_own_block) and before.strip():
            return place + 1
        return self._too_long()

    def _ahead_of_line(self, place: int) -> str:
        """Enough of the next line to know what it begins."""
        known = self.text[place : place + LOOKAHEAD]
        if len(known) < LOOKAHEAD and "\n" not in known and not self.final:
            raise Waiting
        return known if known else "\n"

    def _sentence_end(self, place: int) -> int | None:
        self.place = place
        end = place + 1
        while (following := self.ahead(end)) and (following in LATIN_ENDERS + CJK_ENDERS or following in CLOSERS):
            end += 1
        trails_off = self.text[place:end].startswith(("...", "…"))
        goes_on = trails_off and self.ahead(end, 2)[1:].islower()
        # Everything that decides has been seen; nothing waits from here on.
        self.place = end
        is_cjk = self.text[place] in CJK_ENDERS
        if not is_cjk and following and not following.isspace():
            return self._too_long()
        if not is_cjk and len(self.text[:end].strip()) < SENTENCE_CHARS:
            return None
        if goes_on or (self.text[place] == "." and self._is_abbreviation(place)):
            return None
        return end

    def _is_abbreviation(self, place: int) -> bool:
        word = _LAST_WORD.search(self.text[:place])
        if word is None:
            return False
        name = word.group(1)
        line_start = self.text.rfind("\n", 0, word.start()) + 1
        is_list_number = name.isdigit() and not self.text[line_start : word.start()].strip()
        is_initial = len(name) == 1 and name.isalpha() and name.isupper() and name != "I"
        return is_list_number or is_initial or name.lower() in _ABBREVIATIONS

    def _clause_end(self, place: int) -> int | None:
        is_cjk = self.text[place] in CJK_CLAUSES
        if not is_cjk:
            self.place = place
            following = self.ahead(place + 1)
            self.place = place + 1
            if following and not following.isspace():
                return self._too_long()
        self._last_clause = place + 1
        length = len(self.text[: place + 1].strip())
        wanted = CLAUSE_CHARS if self._every_clause else FIRST_CLAUSE_CHARS
        if (self._is_first or self._every_clause) and length >= (wanted // 3 if is_cjk else wanted):
            return place + 1
        return self._too_long()

    def _too_long(self) -> int | None:
        if self.place - self.plain_since <= LONG_CHARS:
            return None
        return self._last_clause or self._last_space
