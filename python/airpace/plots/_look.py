"""Style of figures for print: sizes, fonts, and the colours and markers of the report."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.path import Path

from airpace._arguments import number

#: Widths of figures in inches: one column of a two-column page, and the whole page.
WIDTHS = {"column": 3.33, "page": 7.0}

#: Fonts are embedded as TrueType (Type 42), which publishers accept; the text of an SVG is drawn as outlines. The same
#: run gives the same bytes.
STYLE: Any = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "airpace",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.1,
    "lines.solid_capstyle": "butt",
    "hatch.linewidth": 0.5,
}


class Drawing(Figure):
    """A matplotlib figure. A notebook displays it; `save` writes a file for print."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the figure in exactly the requested width: `.pdf`, `.svg`, `.eps`, or pixels as `.png`.

        Raises `ValueError` if matplotlib does not support the extension, `OSError` if the file cannot be written.
        """
        text = os.fspath(path)
        undated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
        with rc_context(STYLE):
            self.savefig(text, dpi=300, metadata=undated.get(os.path.splitext(text)[1].lower()))

    def _repr_png_(self) -> bytes:
        """The image for a notebook."""
        pixels = io.BytesIO()
        with rc_context(STYLE):
            self.savefig(pixels, format="png", dpi=160)
        return pixels.getvalue()


def drawing(width: str | float, height: float) -> Drawing:
    """An empty figure of this width, and of this height in inches."""
    if isinstance(width, str) and width not in WIDTHS:
        raise ValueError(f"width={width!r}: give 'column', 'page' or inches")
    inches = WIDTHS[width] if isinstance(width, str) else number("width", width, "'column', 'page' or inches")
    if not 1 <= inches <= 100:
        raise ValueError(f"width={inches}: give 1 to 100 inches")
    high = number("height", height, "inches")
    if not 0.5 <= high <= 100:
        raise ValueError(f"height={high}: give 0.5 to 100 inches")
    return Drawing(figsize=(inches, high), layout="constrained")


class Pen(NamedTuple):
    """Style of a curve."""

    name: str
    colour: str
    line: str
    #: `None` for a curve without markers.
    marker: Path | None
    #: Whether markers are hollow, as for further variants of a scheme.
    hollow: bool

    def markers(self, ground: str) -> dict[str, Any]:
        """Keyword arguments for a line's markers; `ground` is the colour of the background."""
        if self.marker is None:
            return {}
        inside = ground if self.hollow else self.colour
        return {"marker": self.marker, "markerfacecolor": inside, "markeredgecolor": self.colour}


class Look:
    """Colours and markers of the report, from the data of a run."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        """Reads colours and markers from the data of the report's figures."""
        paper: dict[str, str] = data["paper"]
        self.text, self.muted, self.faint = paper["text"], paper["muted"], paper["faint"]
        self.surface, self.capacity = paper["surface"], paper["capacity"]
        self._palette: list[str] = [shade["light"] for shade in data["palette"]]
        self.greys: list[str] = [shade["light"] for shade in data["greys"]]
        self._markers = {name: marker(path) for name, path in data["markers"].items()}
        self.states: dict[str, tuple[str, str]] = {
            look["state"]: (look["colour"]["light"], look["pattern"]) for look in data["states"]
        }

    def palette(self, index: int) -> str:
        """A colour for curves and areas that have no colour of their own."""
        return self._palette[index % len(self._palette)]

    def of_scheme(self, style: Mapping[str, Any]) -> Pen:
        """The style of a scheme's curve."""
        shape = self._markers.get(style["marker"], self._markers["circle"])
        line = "dashed" if style["variant"] else "solid"
        return Pen(style["text"], style["colour"]["light"], line, shape, style["variant"])


#: By name of the report's pattern for a state: the hatch of matplotlib.
HATCHES = {"rising": "////", "falling": "\\\\\\\\", "upright": "||||", "level": "----", "dots": "....", "cross": "++++"}


def marker(svg: str) -> Path:
    """Converts an SVG path of the report (M, L, H, V, A, Z; 14 by 14) to a marker around the origin, y upwards."""
    points: list[tuple[float, float]] = []
    codes: list[int] = []
    at = (0.0, 0.0)

    def add(code: int, *places: tuple[float, float]) -> None:
        nonlocal at
        points.extend(places)
        codes.extend([code] * len(places))
        at = places[-1]

    for command, words in re.findall(r"([A-Z])([^A-Z]*)", svg):
        numbers = [float(word) for word in re.findall(r"-?\d*\.?\d+", words)]
        if command == "M":
            add(int(Path.MOVETO), (numbers[0], numbers[1]))
        elif command == "L":
            add(int(Path.LINETO), (numbers[0], numbers[1]))
        elif command == "H":
            add(int(Path.LINETO), (numbers[0], at[1]))
        elif command == "V":
            add(int(Path.LINETO), (at[0], numbers[0]))
        elif command == "A":
            radius, _, _, large, sweep, x, y = numbers
            for piece in arc(at, (x, y), radius, large == sweep, bool(sweep)):
                add(int(Path.CURVE4), *piece)
        elif command == "Z":
            points.append(points[0])
            codes.append(int(Path.CLOSEPOLY))
        else:
            raise ValueError(f"marker `{svg}` has the command {command}, which is not drawn")
    return Path([(x - 7, 7 - y) for x, y in points], codes)


def arc(
    begin: tuple[float, float], end: tuple[float, float], radius: float, is_left: bool, grows: bool
) -> list[list[tuple[float, float]]]:
    """A circle's arc as Bézier curves, three points each. Source: SVG 1.1, appendix F.6.5."""
    half = ((begin[0] - end[0]) / 2, (begin[1] - end[1]) / 2)
    chord = math.hypot(*half) or 1e-9
    off = math.sqrt(max(radius**2 - chord**2, 0.0)) / chord * (-1 if is_left else 1)
    centre = ((begin[0] + end[0]) / 2 + off * half[1], (begin[1] + end[1]) / 2 - off * half[0])
    start = math.atan2(begin[1] - centre[1], begin[0] - centre[0])
    turn = math.atan2(end[1] - centre[1], end[0] - centre[0]) - start
    turn = turn % (2 * math.pi) if grows else -((-turn) % (2 * math.pi))
    pieces = math.ceil(abs(turn) / (math.pi / 2))
    reach = 4 / 3 * math.tan(turn / pieces / 4) * radius
    curves = []
    for piece in range(pieces):
        one, two = start + turn * piece / pieces, start + turn * (piece + 1) / pieces
        first = (centre[0] + radius * math.cos(one), centre[1] + radius * math.sin(one))
        last = (centre[0] + radius * math.cos(two), centre[1] + radius * math.sin(two))
        curves.append(
            [
                (first[0] - reach * math.sin(one), first[1] + reach * math.cos(one)),
                (last[0] + reach * math.sin(two), last[1] - reach * math.cos(two)),
                last,
            ]
        )
    return curves


def curve(
    axes: Axes,
    pen: Pen,
    x: Sequence[float],
    y: Sequence[float | None],
    place: tuple[int, int],
    **more: Any,  # noqa: ANN401 - as of matplotlib
) -> None:
    """Draws curve number `place[0]` of `place[1]` with a few markers, offset from those of the other curves."""
    values = np.array([math.nan if value is None else value for value in y], dtype=np.float64)
    every = max(len(values) // 7, 1)
    first = int((place[0] + 0.5) * every / place[1])
    axes.plot(
        np.asarray(x), values, color=pen.colour, linestyle=pen.line, label=pen.name, markersize=4, markeredgewidth=0.8,
        markevery=(first, every), **pen.markers("white"), **more,
    )  # fmt: skip


def logarithmic(axes: Axes, low: float, high: float, most: int = 6) -> None:
    """Makes the x axis logarithmic, with at most `most` ticks, labelled as plain numbers."""
    choices = ((1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in choices:
        ticks = [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
        if len(ticks) <= most:
            break
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()


def grid(axes: Axes, look: Look) -> None:
    """Draws fine lines behind the curves."""
    axes.grid(color=look.faint)


#: Sizes in a legend (inches): height of a line, width of a letter, and width of the sign with the gaps around it.
LINE, LETTER, SIGN = 0.155, 0.06, 0.4


def legend(figure: Drawing, *, grows: bool, below: Sequence[Artist] = ()) -> None:
    """Draws a legend above the figure with each name once, and a legend of the artists in `below` under the figure.

    If the figure `grows`, the height of the legends is added to its height.
    """
    named: dict[str, Artist] = {}
    for axes in figure.axes:
        for sign, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, sign)
    both: tuple[tuple[list[Artist], Any], ...] = (
        (list(named.values()), "outside upper left"),
        (list(below), "outside lower left"),
    )
    for signs, place in both:
        if signs:
            names = [str(sign.get_label()) for sign in signs]
            columns = columns_of(names, figure.get_figwidth())
            if grows:
                figure.set_figheight(figure.get_figheight() + LINE * math.ceil(len(names) / columns))
            figure.legend(
                handles=signs, loc=place, ncols=columns, handlelength=1.8, columnspacing=1.0, handletextpad=0.5,
                borderaxespad=0.1, borderpad=0.2, labelspacing=0.35,
            )  # fmt: skip


def columns_of(names: Sequence[str], width: float) -> int:
    """Maximum number of columns that fit into `width` inches, for a legend filled column by column with these names."""
    for columns in range(len(names), 1, -1):
        longest = (max(map(len, column)) for column in np.array_split(names, columns))
        if sum(SIGN + LETTER * letters for letters in longest) <= width:
            return columns
    return 1
