"""The guide to providers tells of every provider and every key, as the code has them."""

from __future__ import annotations

import re
from pathlib import Path

from voicechart.adapters.configuration import parse_configuration
from voicechart.adapters.providers.registry import AnyProvider, all_providers

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "providers.md"
ROW = re.compile(r"^\| (?:responder|recognizer|synthesizer|realtime) \| `.*$", re.MULTILINE)
TOML = re.compile(r"```toml\n(.*?)```", re.DOTALL)


def keys_of(provider: AnyProvider) -> str:
    fields = {key: field for key, field in provider.settings.model_fields.items() if key != "kind"}
    return ", ".join(f"**{key}**" if field.is_required() else key for key, field in fields.items()) or "none"


def test_the_table_holds_every_provider_and_key() -> None:
    shown = ROW.findall(GUIDE.read_text())
    there_are = [f"| {role} | `{kind}` | {one.title} | {keys_of(one)} |" for role, kind, one in all_providers()]
    assert shown == there_are


def test_the_examples_are_configurations() -> None:
    records = [set(parse_configuration(example).model_settings) for example in TOML.findall(GUIDE.read_text())]
    assert records == [{"fast", "at-home"}, {"native"}]
