"""The notebooks run unchanged, and their outputs are equal to the committed outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


def said(notebook: Any) -> list[str]:
    """The text that each code cell printed, and the type of each picture."""
    texts = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            pictures = [kind for kind in data if kind.startswith("image/")]
            texts.append(output.get("text") or (pictures[0] if pictures else data.get("text/plain", "")))
    return texts


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_says_again_what_it_says(path: Path) -> None:
    committed = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    assert path.stat().st_size < 600_000, "outputs are small"
    assert sum(text == "image/png" for text in said(committed)) >= 2, "it has pictures"
    ran = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(ran, timeout=None, kernel_name="python3", resources={"metadata": {"path": path.parent}}).execute()
    assert said(ran) == said(committed), f"{path.name} is not what its code says now: run it anew, and look at it"
