"""The log of commands that run until they are stopped."""

from __future__ import annotations

import logging

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
CHATTY = ("faster_whisper", "httpcore", "httpx")
"""They log what they fetch, which is nobody's business."""


def log_to_stderr() -> None:
    """Everything from INFO on, without anybody's words."""
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
