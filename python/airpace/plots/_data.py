"""What a figure draws: a scenario of a run, and which of its schemes and flows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airpace._arguments import names_of
from airpace._run import Run
from airpace.plots._look import Look, Pen

Dict = dict[str, Any]

#: Capacities whose curves differ by at most this part of their mean are drawn as one area.
ALIKE = 0.01


class Scene:
    """One scenario of a run, as its figures show it."""

    def __init__(
        self,
        run: Run,
        scenario: str | None,
        schemes: str | Iterable[str] | None,
        flows: str | Iterable[str] | None = None,
    ) -> None:
        """Chooses; what the run does not have is refused."""
        if not isinstance(run, Run):
            raise ValueError(f"{run!r} is no run; give what airpace.simulate or airpace.open returned")
        data = run.figure_data()
        names = [one["name"] for one in data["scenarios"]]
        if scenario is None and len(names) != 1:
            raise ValueError(f"the run has several scenarios; give scenario= one of {', '.join(names)}")
        self.data: Dict = data["scenarios"][_place(names, names[0] if scenario is None else scenario, "scenario")]
        self.look = Look(data)
        styles = {style["text"]: style for style in self.data["schemes"]}
        wanted = list(styles) if schemes is None else names_of("schemes", schemes, "schemes of the run")
        self.schemes: list[str] = [list(styles)[_place(list(styles), scheme, "scheme")] for scheme in wanted]
        self.styles = {scheme: styles[scheme] for scheme in self.schemes}
        labels = [flow["flow"] for flow in self.data["flows"]]
        greedy = [at for at, flow in enumerate(self.data["flows"]) if flow["greedy"]] or [0]
        # Of flows that compete, all; else the first that takes what it can get.
        named = None if flows is None else names_of("flows", flows, "labels of flows")
        self.flows = greedy if named is None else [_place(labels, flow, "flow") for flow in named]

    def pen(self, scheme: str, flow: int) -> Pen:
        """How a flow's curve looks. The scheme decides; if only one scheme is drawn, the flow does."""
        pen = self.look.of_scheme(self.styles[scheme])
        if len(self.flows) == 1:
            return pen
        label = str(self.data["flows"][flow]["flow"])
        if len(self.schemes) == 1:
            return Pen(label, self.look.palette(flow), "solid", None, False)
        line = ("solid", "dashed", "dotted")[flow % 3]
        return pen._replace(name=f"{scheme} · {label}", line=line)

    def courses(self) -> list[Dict]:
        """The courses of the flows that are drawn."""
        return [
            course
            for scheme in self.schemes
            for course in self.data["courses"]
            if course["scheme"] == scheme and course["flow"] in self.flows
        ]

    def capacities(self, courses: list[Dict]) -> list[tuple[Dict, list[float]]]:
        """What the last hop could have carried for each of these flows, in Mbit/s per interval.

        Each comes once, with the first course that it is of; only one if all are alike.
        """
        found: list[tuple[Dict, list[float]]] = []
        for course in courses:
            its = self.data["flows"][course["flow"]]
            for known in self.data["capacities"]:
                is_its = known["scheme"] == course["scheme"] and all(
                    known[key] == its[key] for key in ("device", "direction")
                )
                if is_its and not any(known["capacity_mbps"] is mbps for _, mbps in found):
                    found.append((course, known["capacity_mbps"]))
        return found[:1] if all(_alike(found[0][1], mbps) for _, mbps in found) else found

    def times(self, values: list[Any]) -> list[float]:
        """The middle of each interval, in seconds: a mean is drawn there."""
        interval_s: float = self.data["interval_s"]
        return [(at + 0.5) * interval_s for at in range(len(values))]

    def one(self) -> str:
        """The only scheme of a figure that has room for one."""
        return self.schemes[0]


def _alike(one: list[float], other: list[float]) -> bool:
    """Whether two capacities differ by at most a part of their mean, as on the page."""
    apart = sum(abs(mine - its) for mine, its in zip(one, other, strict=False))
    return len(one) == len(other) and apart <= ALIKE * sum(one)


def _place(names: list[str], name: str, kind: str) -> int:
    if name not in names:
        raise ValueError(f"the run has no {kind} `{name}`; it has {', '.join(names)}")
    return names.index(name)


def nothing(what: str) -> ValueError:
    """A figure that has nothing to draw."""
    return ValueError(f"the run has no {what}, so this figure would be empty")
