"""The daemon's log names what happened and never repeats what anybody said."""

from __future__ import annotations

import inspect
import logging

import pytest

from voicechart.adapters.daemon.journal import SHOWN, line_of, write_down
from voicechart.statecharts import published as told
from voicechart.statecharts.actions import Publish, ReleaseOutput, Stamp
from voicechart.statecharts.errors import ErrorScope, ScopedError
from voicechart.statecharts.values import TurnAuthority

STAMP = Stamp(1, 1)


def test_what_was_said_is_not_in_the_log() -> None:
    for payload in (
        told.TurnCommitted("my secret", TurnAuthority.VAD, 1),
        told.SegmentFrozen("s", "my secret"),
        told.ToolStarted("my secret", background=False),
    ):
        assert "secret" not in line_of(payload)


def test_no_field_that_holds_words_is_shown() -> None:
    kinds = [kind for _, kind in inspect.getmembers(told, inspect.isclass) if issubclass(kind, told.Payload)]
    assert kinds
    assert not {"text", "name", "segment_id", "usage"} & SHOWN


def test_a_line_names_the_event_and_why() -> None:
    assert line_of(told.TurnDiscarded("no_words")) == "turn.discarded reason=no_words"
    assert line_of(told.PlaybackBegan()) == "playback.started"


def test_an_error_is_logged_whole_as_an_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    error = ScopedError("audio_service_missing", "connection", ErrorScope.SESSION, "start it")
    write_down(Publish(STAMP, told.SessionClosed("lost", error)))
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage() == "session.closed: connection/audio_service_missing: start it"


def test_hypotheses_progress_and_other_actions_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    write_down(Publish(STAMP, told.TranscriptChanged("s", 1, "my secret")))
    write_down(ReleaseOutput(STAMP, 1))
    assert not caplog.records
