"""What all recognisers over a network have in common: the life of an utterance's stream, written once.

A provider's file declares a `Dialect`, which knows its messages and no socket. `SocketRecognizer` opens a connection
for each utterance and drives the dialect.
"""

from .dialect import STAGE, Dialect, Heard, Ready, Sending
from .input_track import InputTrack, written_format
from .segment_ledger import SegmentLedger
from .socket_recognizer import SocketRecognizer
from .socket_stream import RecognitionLimits, SocketRecognitionStream

__all__ = [
    "STAGE",
    "Dialect",
    "Heard",
    "InputTrack",
    "Ready",
    "RecognitionLimits",
    "SegmentLedger",
    "Sending",
    "SocketRecognitionStream",
    "SocketRecognizer",
    "written_format",
]
