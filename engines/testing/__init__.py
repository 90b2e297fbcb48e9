"""A test kit for embedders: ports that play a script, deterministic to the last sample.

    recognizer = ScriptedRecognizer(Script(hears("what time is it", after_samples=16_000)))
    responder = ScriptedResponder(Script(says("It is noon. Time for lunch.", token_ms=30)))
    synthesizer = ScriptedSynthesizer()

The nth stream a port opens plays its nth script. Ports record what they were told (`port.streams[0].cancel_reason`).
Time passes only in anyio sleeps and deadlines, so a virtual clock (trio's `MockClock`) drives them; there are no
threads and no background tasks: a script advances inside `reports()`. A script can also misbehave (`OnCancel`, a
missing terminal report), because a session must survive such a provider.
"""

from .generation import ScriptedGenerationStream, ScriptedResponder, says
from .recognition import ScriptedRecognitionStream, ScriptedRecognizer, hears
from .script import OnCancel, Script, Step, scripted_error
from .synthesis import ScriptedSynthesisStream, ScriptedSynthesizer, SpeechScript, marker

__all__ = [
    "OnCancel",
    "Script",
    "ScriptedGenerationStream",
    "ScriptedRecognitionStream",
    "ScriptedRecognizer",
    "ScriptedResponder",
    "ScriptedSynthesisStream",
    "ScriptedSynthesizer",
    "SpeechScript",
    "Step",
    "hears",
    "marker",
    "says",
    "scripted_error",
]
