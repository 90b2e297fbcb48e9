"""Which folder may import what from outside the standard library; the arrows between folders are import-linter's."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALLOWED = {
    "audio": {"numpy", "soxr"},
    "engines": {"anyio", "markdown_it", "numpy", "pydantic"},
    "statecharts": {"pydantic", "statemachine"},
}
# The property tests of the public test kit; nothing else imports them.
ALLOWED_BESIDES = {
    "statecharts/testing/plugin.py": {"pytest"},
    "statecharts/testing/properties.py": {"hypothesis"},
    "statecharts/testing/strategies.py": {"hypothesis"},
    # Names that only a type checker knows.
    "statecharts/traces/wording.py": {"_typeshed"},
}


def third_parties(folder: str) -> dict[str, set[str]]:
    """The modules of a folder that import something from outside, with what they import."""
    found: dict[str, set[str]] = {}
    for module in ROOT.joinpath(folder).rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    roots = {name.name.split(".")[0] for name in names}
                case ast.ImportFrom(level=0, module=str(name)):
                    roots = {name.split(".")[0]}
                case _:
                    continue
            outside = roots - sys.stdlib_module_names
            if outside:
                found.setdefault(str(module.relative_to(ROOT)), set()).update(outside)
    return found


@pytest.mark.parametrize("folder", ALLOWED)
def test_a_folder_imports_no_third_party_but_its_own(folder: str) -> None:
    beyond = {
        module: roots - ALLOWED[folder] - ALLOWED_BESIDES.get(module, set())
        for module, roots in third_parties(folder).items()
    }
    assert not {module: roots for module, roots in beyond.items() if roots}
