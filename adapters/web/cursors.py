"""Where in the stream of events somebody is."""

from __future__ import annotations

import re
from typing import NamedTuple

_CURSOR = re.compile(r"([0-9]{1,16}):([0-9]{1,16})")


class Cursor(NamedTuple):
    """Behind event `sequence` of session epoch `session_epoch`. Written "epoch:sequence"; greater is later."""

    session_epoch: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.session_epoch}:{self.sequence}"

    @classmethod
    def parse(cls, text: str) -> Cursor | None:
        """None for what is no cursor."""
        found = _CURSOR.fullmatch(text)
        return cls(int(found[1]), int(found[2])) if found else None
