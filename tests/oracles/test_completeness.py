"""Nothing that could be judged goes without a judge."""

from __future__ import annotations

from pathlib import Path

from material import FIXTURES, GOLDEN

HERE = Path(__file__).parent


def module_of(protocol: str) -> Path:
    return HERE / f"test_{protocol.replace('-', '_')}.py"


def test_every_fixture_has_a_module_that_judges_its_protocol() -> None:
    assert {fixture.protocol for fixture in FIXTURES.values() if not module_of(fixture.protocol).exists()} == set()


def test_every_golden_request_has_a_module_that_judges_its_provider() -> None:
    assert {path.parent.name for path in GOLDEN.values() if not module_of(path.parent.name).exists()} == set()
