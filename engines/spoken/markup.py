"""What of a piece of Markdown has a sound."""

from __future__ import annotations

import json
import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

_JSON = json.JSONDecoder()
_MARKDOWN = MarkdownIt("commonmark", {"html": False})
_SILENT_BLOCKS = re.compile(
    r"<(think|thinking|reasoning|tool_call|tool)\b[^>]*>.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL
)
_TTS_BLOCK = re.compile(r"\A\s*<tts\b[^>]*>(.*?)(?:</tts\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_FENCE = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_DISPLAY_FORMULA = re.compile(r"\$\$.*?(?:\$\$|\Z)|\\\[.*?(?:\\\]|\Z)", re.DOTALL)
_INLINE_FORMULA = re.compile(r"\\\((.*?)(?:\\\)|\Z)|\$(?![\s\d$])([^$\n]*?)\$", re.DOTALL)
_SIMPLE_FORMULA = re.compile(r"[\w\s+\-=*/<>.,()²³]*\Z")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"]+", re.IGNORECASE)
_STRAY_MARKS = re.compile(r"(?<!\w)[*_~]{1,3}(?=\S)|(?<=\S)[*_~]{1,3}(?!\w)")
_EMOJI = re.compile(
    "[\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u200d\ufe0f\U000e0020-\U000e007f]+"
)
_SOUND = re.compile(r"\w")


def said(source: str) -> str:
    """The spoken text of a unit, on one line; empty when nothing of it has a sound.

    Code blocks, formulas that are not plain, reasoning and tool blocks, JSON objects, URLs and emoji are silent. Links
    say their text, inline code says its content.
    """
    tts = _TTS_BLOCK.match(source)
    if tts is not None:
        source = tts.group(1) + " " + source[tts.end() :]
    text = _SILENT_BLOCKS.sub(" ", source)
    text = _FENCE.sub("\n", text)
    text = _without_json(text)
    text = _DISPLAY_FORMULA.sub(" ", text)
    text = _INLINE_FORMULA.sub(_simple_formula, text)
    text = _TAG.sub(" ", text)
    words = [_inline_text(token) for token in _MARKDOWN.parse(text) if token.type == "inline"]
    spoken = _EMOJI.sub(" ", _URL.sub(" ", " ".join(words)))
    spoken = " ".join(_STRAY_MARKS.sub("", spoken).split())
    return spoken if _SOUND.search(spoken) else ""


def _without_json(text: str) -> str:
    """JSON objects are for programs. One that was cut off is no more speech than a whole one."""
    while (start := text.find('{"')) >= 0:
        try:
            _, end = _JSON.raw_decode(text, start)
        except ValueError:
            end = len(text)
        text = f"{text[:start]} {text[end:]}"
    return text


def _simple_formula(formula: re.Match[str]) -> str:
    content = formula.group(1) if formula.group(1) is not None else formula.group(2)
    return f" {content} " if content and _SIMPLE_FORMULA.match(content) else " "


def _inline_text(token: Token) -> str:
    pieces: list[str] = []
    for child in token.children or []:
        if child.type in ("text", "code_inline", "image"):
            pieces.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            pieces.append(" ")
    return "".join(pieces)
