"""What is built holds what runs: the wheel every file of the package, the source archive what its tests read."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import roundel

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    code = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(code, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_wheel_holds_every_file_of_the_package_and_the_licence(built: Path) -> None:
    names = set(zipfile.ZipFile(next(built.glob("*.whl"))).namelist())
    source = ROOT / "src"
    files = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    files = {name for name in files if "__pycache__" not in name and ".egg-info" not in name}
    assert {"roundel/py.typed", "roundel/web/templates/vote.html", "roundel/datasets/bundled/sushi.txt"} <= files
    assert files - names == set()
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_source_archive_holds_what_its_tests_and_its_makefile_read(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        parts = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    needed = (
        "src tests docs examples benchmarks requirements tools README.md CHANGELOG.md LICENSE Makefile pyproject.toml"
    )
    assert set(needed.split()) - parts == set()


def test_the_version_is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == roundel.__version__
