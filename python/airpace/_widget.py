"""The report's figures in a notebook: its own page, in a frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from airpace import _airpace

if TYPE_CHECKING:
    from airpace._run import Run

#: The frame holds the page as it stands, with its own script and style, and is as high as what it shows. What the page
#: saves, such as a PNG, the frame lets through.
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


def widget(run: Run, figures: str | Iterable[str] = ("throughput-delay", "course")) -> Any:  # noqa: ANN401 - as anywidget is imported late
    """The figures of a run as its report shows them, in a notebook: with its tooltips, zoom and choice of schemes.

    The page's own script draws them (`anywidget` puts it there). Saved notebooks hold the page, some 1.5 MB.

    Args:
        run: What to show. All its tables are needed.
        figures: Ids of figures, of `airpace.figures()`; with `()` the whole page.

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
        """A page in a frame."""

        _esm = SCRIPT
        page = traitlets.Unicode().tag(sync=True)

    return Figures(page=run.page(figures))


def figures() -> list[str]:
    """The ids of the figures that a report may have, in the order of the page."""
    return _airpace.figures()
