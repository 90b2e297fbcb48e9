"""What `serve` and `attach` refuse before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from voicechart.adapters.cli import app

runner = CliRunner()
CONFIG = '[audio]\nendpoint = "unix:/nonexistent/audio.sock"\n'


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--host", "0.0.0.0"), "web.token_env"),
        (("--token-env", "NOBODY_SET_THIS"), "is not set"),
        (("--token-env", "not a name"), "web.token_env"),
        (("--host", "no/host"), "web.host"),
        (("--config", "missing.toml"), "cannot be read"),
        (("--config", "missing.toml", "--responder", "local"), "the configuration says who answers"),
        (("--responder", "openai"), "needs --base-url and --model"),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_reason(options: tuple[str, ...], words: str) -> None:
    refused = runner.invoke(app, ["serve", *options])
    assert refused.exit_code == 2
    assert words in " ".join(refused.output.replace("│", " ").split())


def test_the_options_stand_above_the_file(tmp_path: Path) -> None:
    config = tmp_path / "voicechart.toml"
    config.write_text(f'{CONFIG}[web]\nhost = "0.0.0.0"\ntoken_env = "NOBODY_SET_THIS"\n')
    refused = runner.invoke(app, ["serve", "--config", str(config), "--token-env", "NOR_THIS"])
    assert refused.exit_code == 2
    assert "web.token_env" in refused.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("not-an-address",), "is no address"),
        (("ftp://127.0.0.1",), "is no address"),
        (("http://127.0.0.1:9", "--after", "soon"), "is no cursor"),
        (("http://127.0.0.1:9", "--token-env", "NOBODY_SET_THIS"), "is not set"),
    ],
)
def test_following_says_what_is_wrong_with_it(arguments: tuple[str, ...], words: str) -> None:
    refused = runner.invoke(app, ["attach", *arguments])
    assert refused.exit_code == 2
    assert words in refused.output
