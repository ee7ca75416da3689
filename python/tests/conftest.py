"""Options and fixtures of all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--slow`, which also runs tests that take minutes."""
    parser.addoption("--slow", action="store_true", help="also run what takes minutes")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker `slow`."""
    config.addinivalue_line("markers", "slow: takes minutes; runs with --slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips slow tests unless `--slow` is given."""
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="takes minutes: pytest --slow runs it"))


@pytest.fixture(scope="session")
def program() -> Path:
    """The program `airpace`: the path in `AIRPACE`, or a build in the checkout."""
    named = os.environ.get("AIRPACE")
    if named:
        return Path(named)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for profile in ("release", "debug"):
        built = target / profile / "airpace"
        if built.exists():
            return built
    pytest.skip("no program to compare with: cargo build -p airpace-cli, or name it in AIRPACE")
