"""Lifecycle diagrams, drawn from the declared charts: dot and Mermaid text; SVG and PNG through a layout program."""

from .barge_in import barge_in_rows
from .checked_in import Drawing, draw_all, draw_live, drawings, is_live_outdated, outdated
from .differences import DifferenceError, declared_at, declared_now, differences
from .dot import dot_text
from .layout import LayoutError, lay_out
from .mermaid import mermaid_text
from .model import Marks, Picture, leaves_named, picture_of

__all__ = [
    "DifferenceError",
    "Drawing",
    "LayoutError",
    "Marks",
    "Picture",
    "barge_in_rows",
    "declared_at",
    "declared_now",
    "differences",
    "dot_text",
    "draw_all",
    "draw_live",
    "drawings",
    "is_live_outdated",
    "lay_out",
    "leaves_named",
    "mermaid_text",
    "outdated",
    "picture_of",
]
