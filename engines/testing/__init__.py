"""A test kit for embedders: ports that play a script, deterministic to the last sample.

    recognizer = ScriptedRecognizer(Script(hears("what time is it", after_samples=16_000)))
    responder = ScriptedResponder(Script(says("It is noon. Time for lunch.", token_ms=30)))
    synthesizer = ScriptedSynthesizer()
    device = ScriptedDevice()

The nth stream a port opens plays its nth script. Ports record what they were told (`port.streams[0].cancel_reason`).
Time passes only in anyio sleeps and deadlines, so a virtual clock (trio's `MockClock`) drives them; there are no
threads and no background tasks: a script advances inside `reports()`. A script can also misbehave (`OnCancel`, a
missing terminal report), because a session must survive such a provider.
"""

from .device import LinkScript, ScriptedDevice, ScriptedLink
from .generation import ScriptedGenerationStream, ScriptedResponder, says
from .microphone import ScriptedMicrophone, SoundIsSpeech
from .realtime import REALTIME_FORMAT, ScriptedRealtimeModel, ScriptedRealtimeSession, answers, nothing
from .recognition import ScriptedRecognitionStream, ScriptedRecognizer, hears
from .rehearsal import HANDS_FREE, RealtimeRehearsal, Rehearsal, RehearsalOver, TextRehearsal
from .script import OnCancel, Script, Step, scripted_error
from .speaker import ScriptedOutput, ScriptedSpeaker, SpeakerScript
from .synthesis import ScriptedSynthesisStream, ScriptedSynthesizer, SpeechScript, marker

__all__ = [
    "HANDS_FREE",
    "REALTIME_FORMAT",
    "LinkScript",
    "OnCancel",
    "RealtimeRehearsal",
    "Rehearsal",
    "RehearsalOver",
    "Script",
    "ScriptedDevice",
    "ScriptedGenerationStream",
    "ScriptedLink",
    "ScriptedMicrophone",
    "ScriptedOutput",
    "ScriptedRealtimeModel",
    "ScriptedRealtimeSession",
    "ScriptedRecognitionStream",
    "ScriptedRecognizer",
    "ScriptedResponder",
    "ScriptedSpeaker",
    "ScriptedSynthesisStream",
    "ScriptedSynthesizer",
    "SoundIsSpeech",
    "SpeakerScript",
    "SpeechScript",
    "Step",
    "TextRehearsal",
    "answers",
    "hears",
    "marker",
    "nothing",
    "says",
    "scripted_error",
]
