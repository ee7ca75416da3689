"""Figures of the cell: the users that received the PRBs."""

from __future__ import annotations

from matplotlib import rc_context
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch

from airpace._run import Run
from airpace.plots._data import Dict, Scene, nothing
from airpace.plots._look import STYLE, Drawing, drawing, legend

#: Indices of the palette's colours for devices, and for the control channel.
DEVICES, CONTROL = (0, 1, 2, 5), 3


@rc_context(STYLE)
def prb_share(
    run: Run,
    *,
    scenario: str | None = None,
    schemes: str | None = None,
    direction: str | None = None,
    width: str | float = "column",
    height: float | None = None,
) -> Drawing:
    """Share of each user in the PRBs of all carriers over the run, under one scheme.

    `direction` is `down` or `up`; default: the direction of the first flow.
    """
    scene = Scene(run, scenario, schemes)
    cell = cell_of(scene, direction)
    figure = drawing(width, 2.1 if height is None else height)
    axes = figure.add_subplot()
    shown = [at for at, user in enumerate(cell["users"]) if user != "idle"]
    shares = [cell["share_percent"][at] for at in shown]
    colours = [owner_colour(scene, cell, cell["users"][at]) for at in shown]
    names = [owner_name(scene, cell["users"][at]) for at in shown]
    axes.stackplot(scene.times(shares[0]), *shares, colors=colours, labels=names, linewidth=0)
    axes.set_ylim(0, 100)
    axes.set_xlim(0, scene.data["duration_s"])
    axes.set_xlabel("time (s)")
    axes.set_ylabel("% of PRBs")
    legend(figure, grows=height is None)
    return figure


@rc_context(STYLE)
def prb_map(
    run: Run,
    *,
    scenario: str | None = None,
    schemes: str | None = None,
    direction: str | None = None,
    width: str | float = "page",
    height: float | None = None,
) -> Drawing:
    """Each slot of the cell under one scheme, around the moment with most changes; idle PRBs are left empty.

    Retransmissions are paler. `direction` is `down` or `up`; default: the direction of the first flow.
    """
    scene = Scene(run, scenario, schemes)
    cell = cell_of(scene, direction)
    found, carriers = cell["map"], cell["carriers"]
    figure = drawing(width, 0.7 + 1.4 * len(carriers) if height is None else height)
    panels = figure.subplots(len(carriers), 1, sharex=True, squeeze=False)[:, 0]
    for axes, carrier in zip(panels, carriers, strict=True):
        boxes, colours = [], []
        # A carrier of NR has several slots per subframe of 1 ms.
        slot_ms = 1 / 2 ** carrier.get("nr", {}).get("numerology", 0)
        for slot, of, first, count, owner, _, again in found["grants"]:
            if of == carrier["carrier"]:
                left = found["start_ms"] + slot * slot_ms
                right = left + 0.9 * slot_ms
                boxes.append([(left, first), (right, first), (right, first + count), (left, first + count)])
                colour = owner_colour(scene, cell, found["owners"][owner])
                colours.append((colour, 0.55 if again else 1.0))
        axes.add_collection(PolyCollection(boxes, facecolors=colours, linewidths=0))
        axes.set_ylim(0, carrier["prbs"])
        axes.set_yticks([0, carrier["prbs"] // 2, carrier["prbs"]])
        axes.set_ylabel("PRB" if len(carriers) == 1 else f"PRB, carrier {carrier['carrier']}")
    panels[-1].set_xlim(found["start_ms"], found["start_ms"] + found["subframes"])
    panels[-1].set_xlabel("slot (ms)" if any("nr" in carrier for carrier in carriers) else "subframe (ms)")
    devices = [user for user in cell["users"] if user.startswith("device")]
    signs = [
        Patch(facecolor=owner_colour(scene, cell, user), label=owner_name(scene, user))
        for user in (*devices, "background", "control")
    ]
    legend(figure, grows=height is None, below=signs)
    return figure


def cell_of(scene: Scene, direction: str | None) -> Dict:
    """The data of the cell in a direction, under the only scheme of the figure."""
    way = direction or scene.data["flows"][0]["direction"]
    for cell in scene.data["cells"]:
        if cell["scheme"] == scene.one() and cell["direction"] == way:
            known: Dict = cell
            return known
    raise nothing(f"cell in direction `{way}`")


def owner_colour(scene: Scene, cell: Dict, owner: str) -> str:
    """The colour of a user. Background users are grey, so that the devices' PRBs stand out."""
    if owner == "control":
        return scene.look.palette(CONTROL)
    if owner.startswith("device") and owner in cell["users"]:
        return scene.look.palette(DEVICES[cell["users"].index(owner) % len(DEVICES)])
    _, _, number = owner.partition(" ")
    return scene.look.greys[(int(number) if number.isdigit() else 0) % len(scene.look.greys)]


def owner_name(scene: Scene, owner: str) -> str:
    """The name of a user, with the label of its flow."""
    if owner == "background":
        return "background users"
    for flow in scene.data["flows"]:
        if owner == f"device {flow['device']}":
            return f"{owner} ({flow['flow']})"
    return owner
