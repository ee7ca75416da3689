"""The installed package: the tests import the wheel that maturin built and pip installed."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

import airpace

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed() -> importlib.metadata.Distribution:
    """The metadata of the imported package in pip."""
    try:
        found = importlib.metadata.distribution("airpace")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("airpace is imported from a folder, not from where pip installed it")
    assert airpace.__file__ is not None
    assert Path(str(found.locate_file("airpace/__init__.py"))).samefile(airpace.__file__)
    return found


def test_the_wheel_has_every_file_of_the_package(installed: importlib.metadata.Distribution) -> None:
    files = {str(file) for file in installed.files or []}
    package = ROOT / "python"
    paths = [path for path in package.glob("airpace/**/*") if path.is_file() and path.suffix not in (".pyc", ".so")]
    own = {str(path.relative_to(package)) for path in paths}
    assert "airpace/py.typed" in own
    assert own <= files
    assert {Path(file).name for file in files} >= {"LICENSE-MIT", "LICENSE-APACHE", "METADATA"}


def test_one_module_is_for_every_python(installed: importlib.metadata.Distribution) -> None:
    files = [str(file) for file in installed.files or []]
    assert "airpace/_airpace.abi3.so" in files
    about = installed.read_text("WHEEL")
    assert about is not None
    assert "Tag: cp310-abi3-linux_" in about
    assert installed.version == airpace.__version__
    assert installed.metadata["Requires-Python"] == ">=3.10"
    needed = [one for one in installed.requires or [] if "extra ==" not in one]
    assert needed == ["numpy>=1.26"], "nothing else is needed"
