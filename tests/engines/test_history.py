"""What the model is told: committed turns, and replies as they were heard."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.engines.history import (
    INTERRUPTED_MARKER,
    UNKNOWN_MARKER,
    ContextLimits,
    Delivery,
    MemoryHistory,
    Record,
    Reply,
    ToolExchange,
    UserTurn,
    heard_text,
    latest_within,
    messages_of,
)
from voicechart.engines.ports import Message, ToolRequest
from voicechart.statecharts.values import DeliveryStatus, Outcome, PositionSource, ToolStatus, TurnAuthority


def turn(number: int, text: str = "what time is it") -> UserTurn:
    return UserTurn(f"turn-{number}", number, text, TurnAuthority.VAD)


def reply(number: int, status: DeliveryStatus | None, heard: str = "", played_samples: int | None = None) -> Reply:
    delivery = None
    if status is not None:
        delivery = Delivery(status, heard, 1, played_samples, PositionSource.MEASURED, 1.0, 0)
    return Reply(f"response-{number}", "run", number, "It is. Noon.", Outcome.COMPLETED, "", delivery)


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (reply(1, DeliveryStatus.DELIVERED, "It is. Noon.", 900), "It is. Noon."),
        (reply(1, DeliveryStatus.TEXT_ONLY), "It is. Noon."),
        (reply(1, DeliveryStatus.INTERRUPTED, "It is.", 400), f"It is. {INTERRUPTED_MARKER}"),
        (reply(1, DeliveryStatus.INTERRUPTED, "", 40), INTERRUPTED_MARKER),
        (reply(1, DeliveryStatus.INTERRUPTED, "", 0), ""),
        (reply(1, DeliveryStatus.INTERRUPTED, "", None), ""),
        (reply(1, DeliveryStatus.FAILED, "It is.", 400), f"It is. {INTERRUPTED_MARKER}"),
        (reply(1, DeliveryStatus.FAILED, "", 0), ""),
        (reply(1, DeliveryStatus.UNKNOWN, "It is.", None), f"It is. {UNKNOWN_MARKER}"),
        (reply(1, DeliveryStatus.UNKNOWN, "", None), UNKNOWN_MARKER),
        (reply(1, None), UNKNOWN_MARKER),
        (replace(reply(1, None), generated=""), ""),
    ],
)
def test_the_model_is_told_what_was_heard_and_never_more(record: Reply, text: str) -> None:
    assert heard_text(record) == text


def test_a_reply_of_which_nothing_was_heard_leaves_no_message() -> None:
    records = (turn(1), reply(2, DeliveryStatus.INTERRUPTED, "", 0), turn(3, "and now"))
    assert messages_of(records, "Be brief.") == (
        Message("system", "Be brief."),
        Message("user", "what time is it"),
        Message("user", "and now"),
    )


def test_every_call_has_an_outcome_in_the_context_a_cancelled_one_too() -> None:
    calls = (
        ToolExchange(ToolRequest("call-1", "clock", "{}"), ToolStatus.COMPLETED, "noon"),
        ToolExchange(ToolRequest("call-2", "lamp", "{}"), ToolStatus.UNKNOWN),
        ToolExchange(ToolRequest("call-3", "door", "{}")),
    )
    messages = messages_of((replace(reply(1, DeliveryStatus.INTERRUPTED), tools=calls),))
    assert messages == (
        Message("assistant", "", tool_calls=tuple(call.request for call in calls)),
        Message("tool", "noon", call_id="call-1"),
        Message("tool", "(unknown)", call_id="call-2"),
        Message("tool", "(still running)", call_id="call-3"),
    )


WRITTEN = " I look. Now I ask. It is noon."
LOOK = ToolExchange(ToolRequest("call-1", "clock", "{}"), ToolStatus.COMPLETED, "noon", 8)
ASK = ToolExchange(ToolRequest("call-2", "friend", "{}"), ToolStatus.COMPLETED, "yes", 19)
LOOKED = (Message("assistant", "I look.", tool_calls=(LOOK.request,)), Message("tool", "noon", call_id="call-1"))


@pytest.mark.parametrize(
    ("status", "heard", "told"),
    [
        (
            DeliveryStatus.DELIVERED,
            WRITTEN.strip(),
            (
                *LOOKED,
                Message("assistant", "Now I ask.", tool_calls=(ASK.request,)),
                Message("tool", "yes", call_id="call-2"),
                Message("assistant", "It is noon."),
            ),
        ),
        (
            DeliveryStatus.INTERRUPTED,
            "I look. Now",
            (
                *LOOKED,
                Message("assistant", "Now", tool_calls=(ASK.request,)),
                Message("tool", "yes", call_id="call-2"),
                Message("assistant", INTERRUPTED_MARKER),
            ),
        ),
        (
            DeliveryStatus.INTERRUPTED,
            "I look. Now I ask. It",
            (
                *LOOKED,
                Message("assistant", "Now I ask.", tool_calls=(ASK.request,)),
                Message("tool", "yes", call_id="call-2"),
                Message("assistant", f"It {INTERRUPTED_MARKER}"),
            ),
        ),
        (
            DeliveryStatus.UNKNOWN,
            "",
            (
                Message("assistant", "", tool_calls=(LOOK.request,)),
                Message("tool", "noon", call_id="call-1"),
                Message("assistant", "", tool_calls=(ASK.request,)),
                Message("tool", "yes", call_id="call-2"),
                Message("assistant", UNKNOWN_MARKER),
            ),
        ),
    ],
    ids=["all heard", "cut before a call", "cut after the calls", "unknown"],
)
def test_calls_stand_in_the_context_where_they_were_made(
    status: DeliveryStatus, heard: str, told: tuple[Message, ...]
) -> None:
    record = replace(reply(1, status, heard, 900), generated=WRITTEN, tools=(LOOK, ASK))
    assert messages_of((record,)) == told


def test_calls_of_one_step_stay_together() -> None:
    other = replace(ASK, text_position=LOOK.text_position)
    record = replace(reply(1, DeliveryStatus.DELIVERED), generated=WRITTEN, tools=(LOOK, other))
    asked, noon, yes, rest = messages_of((record,))
    assert asked == Message("assistant", "I look.", tool_calls=(LOOK.request, other.request))
    assert (noon.call_id, yes.call_id) == ("call-1", "call-2")
    assert rest == Message("assistant", "Now I ask. It is noon.")


def test_a_memory_gives_its_records_in_order_and_the_latest_on_demand() -> None:
    history = MemoryHistory()
    records = [turn(1), reply(2, DeliveryStatus.DELIVERED), turn(3)]
    for record in reversed(records):
        history.store_turn(record) if isinstance(record, UserTurn) else history.store_reply(record)
    assert history.records() == tuple(records)
    assert history.records(2) == tuple(records[1:])
    assert history.records(4) == tuple(records)
    assert history.records(0) == ()


def test_a_context_that_would_hide_the_question_is_refused() -> None:
    for records, chars in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="at least one"):
            ContextLimits(records, chars)


def test_a_context_within_its_limits_is_shown_whole() -> None:
    records = (turn(1, "abc"), reply(2, DeliveryStatus.DELIVERED), turn(3, "de"))
    chars = len("abc" + "It is. Noon." + "de")
    assert latest_within(records, ContextLimits(3, chars)) == records


@pytest.mark.parametrize("limits", [ContextLimits(2, 100), ContextLimits(3, 16), ContextLimits(1, 1)])
def test_a_context_that_is_cut_begins_with_a_turn_of_the_user(limits: ContextLimits) -> None:
    records = (turn(1, "abc"), reply(2, DeliveryStatus.DELIVERED), turn(3, "de"))
    assert latest_within(records, limits) == records[2:]


def test_the_newest_turn_is_shown_whatever_its_length() -> None:
    records = (turn(1), reply(2, DeliveryStatus.DELIVERED), turn(3, "x" * 1_000))
    assert latest_within(records, ContextLimits(200, 10)) == records[2:]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30))), st.integers(1, 12), st.integers(1, 100))
def test_a_context_is_the_end_of_the_history_and_within_its_limits(
    said: list[tuple[bool, int]], count: int, chars: int
) -> None:
    records: list[Record] = [
        turn(place, "u" * length)
        if by_user
        else replace(reply(place, DeliveryStatus.DELIVERED), generated="a" * length)
        for place, (by_user, length) in enumerate(said)
    ]
    shown = latest_within(records, ContextLimits(count, chars))
    assert list(shown) == records[len(records) - len(shown) :]
    assert len(shown) <= count
    assert not shown or isinstance(shown[0], UserTurn)
    newest = next((record for record in reversed(records) if isinstance(record, UserTurn)), None)
    older = shown if newest not in shown else shown[: shown.index(newest)]
    assert not older or sum(len(message.text) for message in messages_of(shown)) <= chars
