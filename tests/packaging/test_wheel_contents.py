"""The wheel holds every module of the package, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_PACKAGED = {"benchmarks", "build", "diagrams", "dist", "docs", "examples", "out", "requirements", "tests"}
NOT_COPIED = shutil.ignore_patterns(".*", "build", "dist", "out", "*.egg-info", "__pycache__")


def packages_on_disk() -> set[str]:
    """Every folder with an `__init__.py`, by its import name, but for what NOT_PACKAGED names at the top."""
    folders = (init.parent.relative_to(ROOT).parts for init in ROOT.rglob("__init__.py"))
    return {
        ".".join(("voicechart", *parts))
        for parts in folders
        if not parts or not (parts[0].startswith(".") or parts[0] in NOT_PACKAGED)
    }


def module_files_on_disk() -> set[str]:
    return {
        str(Path(*package.split("."), module.name))
        for package in packages_on_disk()
        for module in ROOT.joinpath(*package.split(".")[1:]).glob("*.py")
    }


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in a wheel that is built from a copy, so that nothing left over in the working tree gets in."""
    source = tmp_path_factory.mktemp("source") / "voicechart"
    shutil.copytree(ROOT, source, ignore=NOT_COPIED)
    out = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = out.glob("voicechart-*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_package_list_names_every_folder_with_modules() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(configuration["tool"]["setuptools"]["packages"]) == packages_on_disk()


def test_every_module_on_disk_is_in_the_wheel(wheel_names: set[str]) -> None:
    assert {name for name in wheel_names if name.endswith(".py")} == module_files_on_disk()


def test_the_page_and_the_picture_of_the_chart_are_in_the_wheel(wheel_names: set[str]) -> None:
    folder = ROOT / "adapters" / "web"
    files = {f"voicechart/adapters/web/page/{file.name}" for file in (folder / "page").iterdir()}
    assert {name for name in wheel_names if name.startswith("voicechart/adapters/web/page/")} == files
    assert {f"voicechart/adapters/web/page/{name}" for name in ("index.html", "main.js", "page.css")} <= files
    assert "voicechart/adapters/web/chart.svg" in wheel_names


def test_the_wheel_installs_voicechart_and_nothing_beside_it(wheel_names: set[str]) -> None:
    tops = {name.split("/")[0] for name in wheel_names}
    (metadata,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops == {"voicechart", metadata}


def test_the_wheel_is_marked_as_typed_and_carries_its_licence(wheel_names: set[str]) -> None:
    assert "voicechart/py.typed" in wheel_names
    assert {Path(name).name for name in wheel_names if "/licenses/" in name} == {"LICENSE", "NOTICE"}
