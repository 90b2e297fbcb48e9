"""The locks pin what pyproject.toml asks for, with hashes, and name no place to fetch it from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
BUILD = ["setuptools>=77"]
ORACLES = [
    line
    for line in (ROOT / "requirements" / "oracles.in").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
WANTED = {
    "demo.lock": [*PROJECT["dependencies"], *EXTRAS["local"], *BUILD],
    "local-llm.lock": EXTRAS["local-llm"],
    "oracles.lock": [*PROJECT["dependencies"], *ORACLES, *BUILD],
    "test.lock": [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra), *BUILD],
}


def pins(lock: Path) -> dict[str, list[tuple[Requirement, int]]]:
    """Each pinned requirement of a lock with its number of hashes, by name; markers may pin one name twice."""
    found: dict[str, list[tuple[Requirement, int]]] = {}
    logical_lines = lock.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    for line in logical_lines:
        if line.strip() and not line.startswith("#"):
            text, *hashes = re.split(r"\s--hash=sha256:", line)
            requirement = Requirement(text.strip())
            found.setdefault(canonicalize_name(requirement.name), []).append((requirement, len(hashes)))
    return found


def test_there_is_a_lock_for_the_demo_the_tests_the_language_model_and_the_oracles() -> None:
    assert {lock.name for lock in LOCKS} == set(WANTED)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_satisfies_every_requirement_that_pyproject_states(lock: Path) -> None:
    pinned = pins(lock)
    for wanted in map(Requirement, WANTED[lock.name]):
        versions = [str(pin.specifier).removeprefix("==") for pin, _ in pinned.get(canonicalize_name(wanted.name), [])]
        assert versions, f"{wanted} is not in {lock.name}: run `make lock`"
        assert all(wanted.specifier.contains(version) for version in versions), f"{wanted}: run `make lock`"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_pin_is_exact_and_has_a_hash(lock: Path) -> None:
    for requirement, hashes in (pin for same_name in pins(lock).values() for pin in same_name):
        assert [clause.operator for clause in requirement.specifier] == ["=="]
        assert hashes


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_leaves_the_registry_to_the_user(lock: Path) -> None:
    assert not re.search(r"://|--(extra-)?index-url|--find-links", lock.read_text(encoding="utf-8"))


@pytest.mark.parametrize("extra", ["local", "local-llm"])
def test_an_extra_with_weights_pins_exact_versions(extra: str) -> None:
    for requirement in map(Requirement, EXTRAS[extra]):
        assert [clause.operator for clause in requirement.specifier] == ["=="]
