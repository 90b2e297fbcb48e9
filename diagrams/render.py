"""Draws the checked-in set anew, and the picture that the web page shows: `python diagrams/render.py`.

`voicechart diagram --check` tells when it has to be done.
"""

from __future__ import annotations

import sys
from pathlib import Path

from voicechart.adapters.diagrams import LayoutError, draw_all, draw_live


def main() -> int:
    """Draw into this folder; 0 when it went well."""
    folder = Path(__file__).parent
    try:
        for path in (*draw_all(folder), draw_live(folder.parent / "adapters" / "web" / "chart.svg")):
            print(path)
    except (LayoutError, OSError) as error:
        print(f"render.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
