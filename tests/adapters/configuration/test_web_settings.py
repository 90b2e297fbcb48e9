"""The table `web`: closed to others unless a token is asked."""

from __future__ import annotations

import pytest

from voicechart.adapters.configuration import ConfigurationRefused, parse_configuration
from voicechart.engines.public_events import Visibility

AUDIO = '[audio]\nendpoint = "unix:/run/voicechart/audio.sock"\n'


def problems_of(text: str) -> dict[str, str]:
    with pytest.raises(ConfigurationRefused) as refused:
        parse_configuration(AUDIO + text)
    return {problem.path: problem.message for problem in refused.value.problems}


def test_nothing_is_served_unless_somebody_wants_it_and_then_to_this_machine_alone() -> None:
    settings = parse_configuration(AUDIO).web
    assert not settings.enabled
    assert settings.host == "127.0.0.1"
    assert settings.observers_see == {Visibility.USER, Visibility.SPEECH}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_needs_no_token(host: str) -> None:
    assert parse_configuration(f'{AUDIO}[web]\nhost = "{host}"\n').web.host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "kitchen.local"])
def test_others_are_served_only_with_a_token(host: str) -> None:
    problems = problems_of(f'[web]\nhost = "{host}"\n')
    assert set(problems) == {"web.token_env"}
    assert "127.0.0.1" in problems["web.token_env"]
    text = f'{AUDIO}[web]\nhost = "{host}"\ntoken_env = "WEB_TOKEN"\n'
    assert parse_configuration(text).web.token_env == "WEB_TOKEN"


def test_a_token_does_not_stand_in_the_file() -> None:
    problems = problems_of('[web]\ntoken = "hunter2"\n')
    assert "environment" in problems["web.token"]
    assert "hunter2" not in problems["web.token"]


@pytest.mark.parametrize(
    "origin", ["*", "null", "panel.example", "https://a.example/", "https://u:p@a.example", "ws://a"]
)
def test_an_origin_is_a_scheme_and_a_host(origin: str) -> None:
    assert set(problems_of(f'[web]\norigins = ["{origin}"]\n')) == {"web.origins.0"}


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [
        ("port", 0, 65_535),
        ("max_conversations", 0, 1_000),
        ("idle_s", 1, 604_800),
        ("max_observers", 1, 10_000),
        ("requests_per_minute", 1, 100_000),
        ("burst", 1, 10_000),
        ("max_body_bytes", 1_024, 1_048_576),
        ("max_text_chars", 1, 100_000),
        ("keep_alive_s", 1, 300),
        ("replay_events", 1, 100_000),
        ("replay_bytes", 1_024, 268_435_456),
        ("waiting_events", 1, 100_000),
        ("waiting_bytes", 1_024, 67_108_864),
    ],
)
def test_every_bound_is_kept_at_its_edge(key: str, low: int, high: int) -> None:
    for number in (low, high):
        assert getattr(parse_configuration(f"{AUDIO}[web]\n{key} = {number}\n").web, key) == number
    for number in (low - 1, high + 1):
        assert set(problems_of(f"[web]\n{key} = {number}\n")) == {f"web.{key}"}
