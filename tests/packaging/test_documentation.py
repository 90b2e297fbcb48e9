"""What the documents show is what the files hold, and it runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(str(example.relative_to(ROOT)) for example in ROOT.glob("examples/*.py"))
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]

# A block under the comment `<!-- runs: examples/embed.py -->` shows that whole file.
SHOWN_BLOCK = re.compile(r"<!-- runs: (?P<path>\S+) -->\n+```python\n(?P<code>.*?)```\n", re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|mailto:|#)(?P<target>[^)#\s]+)[^)]*\)")
FENCED_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def shown_blocks(document: Path) -> dict[str, str]:
    return {block["path"]: block["code"] for block in SHOWN_BLOCK.finditer(document.read_text(encoding="utf-8"))}


def document_name(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=document_name)
def test_a_block_that_says_it_runs_equals_the_file_it_names(document: Path) -> None:
    for path, code in shown_blocks(document).items():
        assert code == ROOT.joinpath(path).read_text(encoding="utf-8"), f"{document.name} shows another {path}"


def test_the_readme_shows_how_to_embed_and_some_document_every_example() -> None:
    assert "examples/embed.py" in shown_blocks(ROOT / "README.md")
    assert set(EXAMPLES) == {path for document in DOCUMENTS for path in shown_blocks(document)}


# Examples that are tests are found by pytest itself.
@pytest.mark.slow
@pytest.mark.parametrize("example", [example for example in EXAMPLES if "/test_" not in example])
def test_an_example_runs_to_its_end_without_a_warning(example: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / example)],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=document_name)
def test_every_link_to_a_file_finds_it(document: Path) -> None:
    prose = FENCED_BLOCK.sub("", document.read_text(encoding="utf-8"))
    targets = {link["target"] for link in LINK.finditer(prose)}
    assert not {target for target in targets if not document.parent.joinpath(target).exists()}
