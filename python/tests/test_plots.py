"""Figures for print and figures in a notebook."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.path
import numpy as np
import pytest

import airpace
from airpace import plots
from airpace.plots._look import Look, marker

FIGURES: dict[str, Callable[..., plots.Drawing]] = {
    "throughput_delay": plots.throughput_delay,
    "order_statistics": plots.order_statistics,
    "over_time": plots.over_time,
    "delay_cdf": plots.delay_cdf,
    "fairness": plots.fairness,
    "estimate": plots.estimate,
    "prb_share": plots.prb_share,
    "prb_map": plots.prb_map,
}


@pytest.fixture(scope="module")
def run() -> airpace.Run:
    """Two flows in a cell, under three schemes."""
    schemes = ["pbe", "pbe@paper", "cubic"]
    return airpace.simulate("two-flows", schemes=schemes, seeds=[1, 2], set={"duration_s": 4})


def page_data(page: str) -> dict[str, Any]:
    """The data embedded in a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_what_figures_show_is_what_the_report_shows(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"schemes": ["pbe", "bbr"], "set": {"duration_s": 2}}
    kept = airpace.simulate("stationary-idle", **arguments)
    written = airpace.simulate("stationary-idle", out=tmp_path / "run", **arguments)
    report = page_data((tmp_path / "run/report.html").read_text())
    assert kept.figure_data() == written.figure_data() == report


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_vectors_with_their_fonts(name: str, run: airpace.Run, tmp_path: Path) -> None:
    figure = FIGURES[name](run)
    width = 7.0 if name == "prb_map" else 3.33
    assert figure.get_figwidth() == width
    figure.save(tmp_path / "figure.pdf")
    pdf = (tmp_path / "figure.pdf").read_bytes()
    assert b"/FontFile2" in pdf, "TrueType fonts are embedded"
    assert b"/Type3" not in pdf
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf)
    assert box is not None
    assert float(box[1]) == pytest.approx(width * 72, abs=0.5), "exactly as wide as a column"
    assert b"/Subtype /Image" not in pdf, "no pixels"


def test_the_same_run_gives_the_same_figure(run: airpace.Run, tmp_path: Path) -> None:
    for ending in (".pdf", ".svg"):
        files = [tmp_path / f"{name}{ending}" for name in ("one", "two")]
        for file in files:
            plots.delay_cdf(run).save(file)
        assert files[0].read_bytes() == files[1].read_bytes()
    svg = (tmp_path / "one.svg").read_text()
    assert "<text" not in svg, "text is outlines"
    assert "<image" not in svg


def test_curves_have_the_numbers_and_colours_of_the_report(run: airpace.Run) -> None:
    data = run.figure_data()["scenarios"][0]
    axes = plots.over_time(run, schemes="cubic", flows=["near"]).axes[0]
    line = next(line for line in axes.get_lines() if line.get_label() == "cubic")
    course = next(one for one in data["courses"] if one["scheme"] == "cubic" and one["flow"] == 0)
    assert np.asarray(line.get_ydata()).tolist() == course["throughput_mbps"]
    style = next(style for style in data["schemes"] if style["text"] == "cubic")
    assert line.get_color() == style["colour"]["light"]
    point = next(row for row in data["rows"] if row["scheme"] == "cubic")["point"]
    places = [line.get_xydata() for line in plots.throughput_delay(run).axes[0].get_lines()]
    wanted = [point["one_way_delay_p95_ms"], point["throughput_mbps"]]
    assert any(np.asarray(place).tolist() == [wanted] for place in places)


def test_capacity_is_that_of_each_scheme_that_is_drawn() -> None:
    run = airpace.simulate("competitor", schemes=["copa", "pbe"], set={"duration_s": 8})
    data = run.figure_data()["scenarios"][0]
    axes = plots.over_time(run).axes[0]
    capacities = [line for line in axes.get_lines() if line.get_label() == "capacity of each"]
    assert len(capacities) == 2, "the competitor leaves each scheme another capacity"
    for line, scheme in zip(capacities, ["copa", "pbe"], strict=True):
        truth = next(one for one in data["capacities"] if one["scheme"] == scheme)
        style = next(one for one in data["schemes"] if one["text"] == scheme)
        assert np.asarray(line.get_ydata()).tolist() == truth["capacity_mbps"]
        assert line.get_color() == style["colour"]["light"]
    alone = plots.over_time(run, schemes="pbe").axes[0]
    assert [patch.get_label() for patch in alone.collections] == ["capacity"]


def test_schemes_of_ones_own_have_looks_of_their_own() -> None:
    class Fixed(airpace.Controller):
        def on_ack(self, ack: airpace.Ack) -> None: ...

        def on_loss(self, loss: airpace.Loss) -> None: ...

        def control(self) -> airpace.Control:
            return airpace.Control(1e9, 8.0)

    own = [(name, Fixed) for name in ("a", "b", "c")]
    run = airpace.simulate("stationary-idle", schemes=["pbe", *own], set={"duration_s": 1})
    styles = run.figure_data()["scenarios"][0]["schemes"]
    assert len({(style["colour"]["light"], style["marker"]) for style in styles}) == 4
    assert "your own" in styles[1]["summary"]


def test_markers_are_those_of_the_page(run: airpace.Run) -> None:
    look = Look(run.figure_data())
    circle = marker(run.figure_data()["markers"]["circle"])
    radii = np.hypot(*np.array([at for at, code in circle.iter_segments(curves=False, simplify=False) if code < 4]).T)
    assert radii == pytest.approx(np.full(len(radii), 6.0), abs=0.05), "a circle of radius 6 around the middle"
    style = run.figure_data()["scenarios"][0]["schemes"]
    pens = [look.of_scheme(one) for one in style]
    assert [pen.hollow for pen in pens] == [False, True, False], "a further variant of a scheme is hollow"
    assert all(isinstance(pen.marker, matplotlib.path.Path) for pen in pens)
    for path in run.figure_data()["markers"].values():
        assert np.abs(marker(path).get_extents().get_points()).max() <= 7.01
    with pytest.raises(ValueError, match="command Q"):
        marker("M1 1Q2 2 3 3Z")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda run: plots.over_time(run, schemes="bbr"), "no scheme `bbr`; it has pbe"),
        (lambda run: plots.over_time(run, scenario="elsewhere"), "no scenario `elsewhere`"),
        (lambda run: plots.delay_cdf(run, flows=["third"]), "no flow `third`; it has near, far"),
        (lambda run: plots.estimate(run, schemes="cubic"), "no estimate of a rate by `cubic`"),
        (lambda run: plots.delay_cdf(run, width="wide"), "'column', 'page' or inches"),
        (lambda run: plots.prb_share(run, direction="sideways"), "no cell in direction"),
        (lambda run: run.page(["tables"]), "no figure is called `tables`; there are throughput-delay"),
        (lambda run: plots.throughput_delay(run, width=None), "width=None: give 'column'"),  # type: ignore[arg-type]
        (lambda run: plots.throughput_delay(run, height="low"), "height='low': give inches"),  # type: ignore[arg-type]
        (lambda run: plots.throughput_delay(run, height=0), "height=0.0: give 0.5 to 100 inches"),
        (lambda run: plots.throughput_delay(run.summary), "is no run; give what airpace.simulate"),
        (lambda run: plots.over_time(run, flows="phones"), "has no flow `phones`; it has near, far"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call: Callable[[airpace.Run], object], says: str, run: airpace.Run) -> None:
    with pytest.raises(ValueError, match=says):
        call(run)


def test_figures_need_their_tables() -> None:
    bare = airpace.simulate("stationary-idle", schemes="reno", set={"duration_s": 1}, tables=["acks"])
    with pytest.raises(ValueError, match="table `capacity` was not kept"):
        plots.over_time(bare)


def test_a_notebook_shows_figures_as_pixels(run: airpace.Run) -> None:
    pixels = plots.delay_cdf(run)._repr_png_()
    assert pixels.startswith(b"\x89PNG")
    assert len(zlib.compress(pixels)) < 100_000


def test_figures_in_a_notebook_are_the_page_itself(run: airpace.Run) -> None:
    shown = run.show(["course", "jain"])
    data = page_data(shown.page)
    assert data["only"] == ["course", "jain"]
    assert data["scenarios"] == run.figure_data()["scenarios"]
    whole = page_data(run.page())
    assert "only" not in whole
    assert shown.page.count("<script>") == run.page().count("<script>") == 2, "one script draws both"
    assert set(airpace.figures()) >= {"throughput-delay", "course", "delay-cdf", "jain", "prb-map", "estimate"}


def test_importing_airpace_brings_no_figures() -> None:
    script = (
        "import sys, airpace; sys.exit(any(name in sys.modules for name in ('matplotlib', 'anywidget', 'gymnasium')))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
