"""What is judged: the fixtures and golden requests that the normal tests keep under tests/conformance."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from strict import Json, Refused

from voicechart.adapters.testing import WireEvent, WireFixture, load_fixtures
from voicechart.engines.ports import ToolRequest

CONFORMANCE = Path(__file__).parents[1] / "conformance"
FIXTURES = load_fixtures(CONFORMANCE / "fixtures")
GOLDEN = {
    str(path.relative_to(CONFORMANCE / "golden")): path for path in sorted((CONFORMANCE / "golden").rglob("*.json"))
}

CALLS = (ToolRequest("call_a", "get_time", '{"zone": "UTC"}'), ToolRequest("call_b", "get_time", "{}"))


def messages_of(body: Iterable[bytes]) -> Iterator[Json]:
    """The JSON messages in a body of server-sent events of the test kit."""
    for line in b"".join(body).decode().splitlines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def each_fixture(protocol: str) -> pytest.MarkDecorator:
    """Parametrises `fixture` with every fixture of a protocol. There must be one."""
    found = [pytest.param(fixture, id=name) for name, fixture in FIXTURES.items() if fixture.protocol == protocol]
    assert found, f"no fixture under tests/conformance/fixtures has the protocol {protocol!r}"
    return pytest.mark.parametrize("fixture", found)


def each_golden(provider: str) -> pytest.MarkDecorator:
    """Parametrises `golden` with every recorded request of a provider, parsed. There must be one."""
    found = [
        pytest.param(json.loads(path.read_text(encoding="utf-8")), id=name.removesuffix(".json"))
        for name, path in GOLDEN.items()
        if path.parent.name == provider
    ]
    assert found, f"tests/conformance/golden/{provider} holds nothing"
    return pytest.mark.parametrize("golden", found)


def judge(fixture: WireFixture, judged_by: Callable[[WireEvent], object]) -> None:
    """Every event passes, or is refused where the fixture says that it deviates. `judged_by` raises `Refused`."""
    for place, event in enumerate(fixture.events):
        where = f"event {place}, {event.content[:200]!r}"
        try:
            judged_by(event)
        except Refused as refusal:
            if not event.deviates:
                raise Refused(f"{where}: {refusal}") from refusal
        else:
            assert not event.deviates, f"{where}: said to deviate, and the types accept it"


def json_of(event: WireEvent) -> Json:
    """The message as JSON. Raises `Refused` for text that is none, and for a binary message."""
    try:
        return json.loads(event.text)
    except ValueError as error:
        raise Refused(str(error)) from error
