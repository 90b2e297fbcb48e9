"""Laying a drawing out: the one thing here that needs a program of its own.

`dot` is taken where it is on the PATH; otherwise the layout program in the wheel graphviz-pure, which gives the same
bytes on every platform. An SVG says in a comment what it was drawn from, so that a checked-in one can be told to be out
of date without comparing coordinates, which differ between versions of the programs.
"""

from __future__ import annotations

import re
import shutil
import sysconfig
from hashlib import sha256
from html import escape
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Literal

Format = Literal["svg", "png"]
_TO_INSTALL = "pip install 'voicechart[diagrams]', or use --format dot or mermaid, which need nothing"
_SOURCE = re.compile(r"<!-- voicechart diagram, source sha256:([0-9a-f]{64}) -->")
_FONTS = "font-family=\"Arial,Helvetica,'Liberation Sans',sans-serif\""


class LayoutError(Exception):
    """A drawing could not be laid out. The text says what to install or what the program complained about."""


def lay_out(dot: str, form: Format, title: str, *, reproducible: bool = False) -> bytes:
    """A drawing of dot text. `reproducible`: with graphviz-pure even where there is `dot`. Raises `LayoutError`."""
    drawn = _run(dot, form, _program(reproducible=reproducible))
    return _finished(drawn.decode("utf-8"), dot, title).encode("utf-8") if form == "svg" else drawn


def source_of(svg: str) -> str | None:
    """The digest of the text from which an SVG was drawn; None when it does not say."""
    found = _SOURCE.search(svg)
    return found[1] if found else None


def digest_of(dot: str) -> str:
    """The digest that an SVG of this text bears."""
    return sha256(dot.encode("utf-8")).hexdigest()


def _program(*, reproducible: bool) -> str:
    pure = shutil.which("graphviz-pure") or shutil.which("graphviz-pure", path=sysconfig.get_path("scripts"))
    dot = shutil.which("dot")
    program = (pure or dot) if reproducible else (dot or pure)
    if program is None:
        raise LayoutError(f"there is no layout program, neither dot nor graphviz-pure: {_TO_INSTALL}")
    return program


def _run(dot: str, form: Format, program: str) -> bytes:
    graphviz = _graphviz()
    # The package knows one place for the program, and no argument for it.
    graphviz.backend.dot_command.DOT_BINARY = Path(program)
    try:
        drawn: bytes = graphviz.pipe("dot", form, dot.encode("utf-8"), quiet=True)
    except (graphviz.CalledProcessError, graphviz.ExecutableNotFound) as error:
        complaint = getattr(error, "stderr", b"") or str(error).encode()
        raise LayoutError(f"{program} failed: {complaint.decode(errors='replace').strip()}") from error
    return drawn


def _graphviz() -> ModuleType:
    try:
        return import_module("graphviz")
    except ImportError as error:
        raise LayoutError(f"the package graphviz is not installed: {_TO_INSTALL}") from error


def _finished(svg: str, dot: str, title: str) -> str:
    """Say where it comes from, name it for those who cannot see it, and leave out what tells nothing."""
    svg = re.sub(r"<!--(?!.*voicechart).*?-->\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<title>.*?</title>\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r'font-family="[^"]*"', _FONTS, svg)
    about = f"<!-- voicechart diagram, source sha256:{digest_of(dot)} -->\n"
    opening = re.search(r"<svg\b[^>]*>", svg)
    if opening is None:
        raise LayoutError("the layout program wrote no SVG")
    named = opening[0].replace("<svg", '<svg role="img"', 1)
    return f"{svg[: opening.start()]}{about}{named}\n<title>{escape(title)}</title>{svg[opening.end() :]}"
