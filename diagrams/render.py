"""Draws the checked-in set anew: `python diagrams/render.py`. `voicechart diagram --check` tells when it has to be."""

from __future__ import annotations

import sys
from pathlib import Path

from voicechart.adapters.diagrams import LayoutError, draw_all


def main() -> int:
    """Draw into this folder; 0 when it went well."""
    try:
        for path in draw_all(Path(__file__).parent):
            print(path)
    except (LayoutError, OSError) as error:
        print(f"render.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
