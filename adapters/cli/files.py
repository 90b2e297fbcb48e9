"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile

_MODE = 0o644


def write_whole(path: Path, content: bytes, *, mode: int = _MODE) -> None:
    """Write beside the place, then put it there. Raises `OSError`; what was there before is left then."""
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as beside:
        written = Path(beside.name)
        try:
            beside.write(content)
            beside.close()
            written.chmod(mode)
            os.replace(written, path)
        except OSError:
            written.unlink()
            raise
