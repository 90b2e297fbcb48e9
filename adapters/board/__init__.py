"""The board's microphone and loudspeaker, over a Unix socket: both ends of the protocol, and the devices behind it.

- the daemon's end: `BoardAudio` gives the `Microphone` and the `Speaker` port;
- the service's end: `serve_audio` lends a `CaptureDevice` and a `RenderDevice` to one conversation at a time;
- without a socket: `InProcessMicrophone` and `InProcessSpeaker`, on the same render core;
- devices: WAV files in real time (`WavMicrophone`, `WavSpeaker`), and PortAudio (`portaudio_device`, an extra).
"""

from __future__ import annotations

from .board_microphone import BoardMicrophone
from .board_speaker import BoardSpeaker
from .buttons import ButtonFifo, ButtonSource, ButtonsRefused
from .client import BoardAudio, ClientLimits
from .devices import CaptureDevice, CaptureSink, DeviceLost, RenderBlock, RenderDevice, RenderedSpan, RenderSource
from .echo_path import EchoPath
from .endpoint import AudioEndpoint, EndpointRefused, parse_endpoint
from .in_process import InProcessMicrophone, InProcessSpeaker
from .link import LinkLimits
from .messages import ClientRole
from .portaudio_device import PortAudioMicrophone, PortAudioSpeaker
from .protocol import ProtocolViolation
from .render_stream import QueueLimits
from .service import ServiceLimits, serve_audio
from .socket_path import SocketRefused
from .wav_microphone import Utterance, WavMicrophone
from .wav_speaker import Recording, WavSpeaker

__all__ = [
    "AudioEndpoint",
    "BoardAudio",
    "BoardMicrophone",
    "BoardSpeaker",
    "ButtonFifo",
    "ButtonSource",
    "ButtonsRefused",
    "CaptureDevice",
    "CaptureSink",
    "ClientLimits",
    "ClientRole",
    "DeviceLost",
    "EchoPath",
    "EndpointRefused",
    "InProcessMicrophone",
    "InProcessSpeaker",
    "LinkLimits",
    "PortAudioMicrophone",
    "PortAudioSpeaker",
    "ProtocolViolation",
    "QueueLimits",
    "Recording",
    "RenderBlock",
    "RenderDevice",
    "RenderSource",
    "RenderedSpan",
    "ServiceLimits",
    "SocketRefused",
    "Utterance",
    "WavMicrophone",
    "WavSpeaker",
    "parse_endpoint",
    "serve_audio",
]
