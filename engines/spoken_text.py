"""From what the model writes to what is said: safe units of speech, cut as the text streams in.

A unit ends at a sentence end, or at a paragraph. It never cuts a number, an abbreviation, a URL, a link, code or an
open bracket of Markdown. Markup without sound is removed; code blocks are not spoken. Each unit knows the range of the
text it speaks, so that what was heard can be told from what was written.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

from .ports import SpeechUnit

_CJK_ENDERS = "。\uff01\uff1f"
_ENDERS = ".!?…" + _CJK_ENDERS
_CLOSERS = "\"'”’)]»」』*_"
_ABBREVIATIONS = frozenset(
    [
        *[
            "mr",
            "mrs",
            "ms",
            "dr",
            "prof",
            "st",
            "sr",
            "jr",
            "vs",
            "etc",
            "e.g",
            "i.e",
            "no",
            "vol",
            "fig",
            "approx",
            "dept",
            "est",
            "inc",
            "ltd",
            "co",
            "u.s",
            "u.k",
            "a.m",
            "p.m",
        ],
        *["jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"],
    ]
)
_FENCE = re.compile(r"^(```|~~~)", re.MULTILINE)
_LAST_WORD = re.compile(r"([\w.]+)$")
_SPOKEN = re.compile(r"\w")


class SpokenTextProjection:
    """Feed text as it comes, take units as they become safe; `close` gives the rest."""

    def __init__(self, min_chars: int = 12) -> None:
        self._min_chars = min_chars
        self._pending = ""
        self._offset = 0
        self._next_index = 0
        self._markdown = MarkdownIt("commonmark")

    def feed(self, text: str) -> list[SpeechUnit]:
        """Units that are complete now, in order."""
        self._pending += text
        units: list[SpeechUnit] = []
        while (end := self._safe_end()) is not None:
            units.extend(self._cut(end))
        return units

    def close(self) -> list[SpeechUnit]:
        """The rest, spoken as it stands."""
        return self._cut(len(self._pending)) if self._pending else []

    def _cut(self, end: int) -> list[SpeechUnit]:
        source, self._pending = self._pending[:end], self._pending[end:]
        start, self._offset = self._offset, self._offset + end
        spoken = self._say(source)
        if not spoken:
            return []
        unit = SpeechUnit(self._next_index, spoken, start, self._offset)
        self._next_index += 1
        return [unit]

    def _safe_end(self) -> int | None:
        """Where the first complete unit ends; None while nothing is safe."""
        text = self._pending
        for place, character in enumerate(text):
            if character == "\n" and text[place + 1 : place + 2] == "\n" and not self._is_open(text[:place]):
                return place + 2
            if character not in _ENDERS:
                continue
            end = place + 1
            while end < len(text) and text[end] in _ENDERS + _CLOSERS:
                end += 1
            if self._ends_sentence(text, place, end):
                return end
        return None

    def _ends_sentence(self, text: str, place: int, end: int) -> bool:
        if end < self._min_chars and text[place] not in _CJK_ENDERS:
            return False
        if text[place] not in _CJK_ENDERS and (end >= len(text) or not text[end].isspace()):
            return False
        if text[place] == ".":
            word = _LAST_WORD.search(text[:place])
            if word and (word.group(1).lower() in _ABBREVIATIONS or self._is_list_number(text, word)):
                return False
        return not self._is_open(text[:end])

    @staticmethod
    def _is_list_number(text: str, word: re.Match[str]) -> bool:
        """`1.` at the start of a line begins a list item."""
        line_start = text.rfind("\n", 0, word.start()) + 1
        return word.group(1).isdigit() and not text[line_start : word.start()].strip()

    @staticmethod
    def _is_open(text: str) -> bool:
        """Whether code, a link or a bracket is still open at the end of `text`."""
        fences = len(_FENCE.findall(text))
        if fences % 2:
            return True
        if not fences and text.count("`") % 2:
            return True
        return text.count("[") > text.count("]") or (text.rfind("](") > text.rfind(")"))

    def _say(self, source: str) -> str:
        """What is said of a piece of Markdown: its text, on one line."""
        words: list[str] = []
        for token in self._markdown.parse(source):
            if token.type == "inline":
                words.append(_inline_text(token))
        spoken = " ".join(" ".join(words).split())
        return spoken if _SPOKEN.search(spoken) else ""


def _inline_text(token: Token) -> str:
    pieces: list[str] = []
    for child in token.children or []:
        if child.type in ("text", "code_inline"):
            pieces.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            pieces.append(" ")
        elif child.type == "image":
            pieces.append(child.content)
    return "".join(pieces)
