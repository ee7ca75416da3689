"""The report's figures in a notebook: the page of the report in a frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from airpace import _airpace

if TYPE_CHECKING:
    from airpace._run import Run

#: The frame contains the unchanged page, with its own script and style, and has the height of the page. Downloads from
#: the page, such as a PNG, pass through the frame.
SCRIPT = """
function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.style.cssText = "width:100%;border:0;display:block;height:480px";
  frame.title = "Airpace: figures of a run";
  let watch = null;
  frame.addEventListener("load", () => {
    const root = frame.contentDocument.documentElement;
    const fit = () => { frame.style.height = `${frame.contentDocument.body.scrollHeight}px`; };
    watch?.disconnect();
    watch = new ResizeObserver(fit);
    watch.observe(frame.contentDocument.body);
    root.style.overflow = "hidden";
    fit();
  });
  const show = () => { frame.srcdoc = model.get("page"); };
  model.on("change:page", show);
  el.append(frame);
  show();
  return () => { watch?.disconnect(); model.off("change:page", show); };
}
export default { render };
"""


def widget(run: Run, figures: str | Iterable[str] = ("throughput-delay", "course")) -> Any:  # noqa: ANN401 - anywidget is imported late
    """Shows the report's figures of a run in a notebook, with tooltips, zoom and a choice of schemes.

    The script of the report draws the figures, in a frame that `anywidget` displays. A saved notebook contains the
    page, about 1.5 MB.

    Args:
        run: The run. All its tables are needed.
        figures: Ids of figures from `airpace.figures()`; `()` shows the whole page.

    Raises:
        ImportError: anywidget is missing.
        ValueError: A figure that does not exist, or a table that `simulate` did not keep.
    """
    from airpace._run import Run

    if not isinstance(run, Run):
        raise ValueError(f"run={run!r}: give what airpace.simulate or airpace.open returned")
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ImportError("figures in a notebook need anywidget: pip install 'anywidget>=0.9'") from error

    class Figures(anywidget.AnyWidget):
        """The page in a frame."""

        _esm = SCRIPT
        page = traitlets.Unicode().tag(sync=True)

    return Figures(page=run.page(figures))


def figures() -> list[str]:
    """The ids of all figures of a report, in the order of the page."""
    return _airpace.figures()
