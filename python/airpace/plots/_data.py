"""Data of a figure: a scenario of a run, with the selected schemes and flows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airpace._arguments import names_of
from airpace._run import Run
from airpace.plots._look import Look, Pen

Dict = dict[str, Any]

#: Maximum difference of capacities that are drawn as one area, relative to their mean.
ALIKE = 0.01


class Scene:
    """One scenario of a run, with the selected schemes and flows."""

    def __init__(
        self,
        run: Run,
        scenario: str | None,
        schemes: str | Iterable[str] | None,
        flows: str | Iterable[str] | None = None,
    ) -> None:
        """Selects scenario, schemes and flows; raises `ValueError` for names that the run does not have."""
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
        # Default: all greedy flows, or the first flow if no flow is greedy.
        named = None if flows is None else names_of("flows", flows, "labels of flows")
        self.flows = greedy if named is None else [_place(labels, flow, "flow") for flow in named]

    def pen(self, scheme: str, flow: int) -> Pen:
        """The style of a flow's curve. It depends on the scheme, or on the flow if only one scheme is drawn."""
        pen = self.look.of_scheme(self.styles[scheme])
        if len(self.flows) == 1:
            return pen
        label = str(self.data["flows"][flow]["flow"])
        if len(self.schemes) == 1:
            return Pen(label, self.look.palette(flow), "solid", None, False)
        line = ("solid", "dashed", "dotted")[flow % 3]
        return pen._replace(name=f"{scheme} · {label}", line=line)

    def courses(self) -> list[Dict]:
        """The curves over time of the selected flows."""
        return [
            course
            for scheme in self.schemes
            for course in self.data["courses"]
            if course["scheme"] == scheme and course["flow"] in self.flows
        ]

    def capacities(self, courses: list[Dict]) -> list[tuple[Dict, list[float]]]:
        """The capacity of the last hop for each of these flows, in Mbit/s per interval.

        Each capacity is returned once, with its first course. If all capacities are alike, only the first is returned.
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
        """The middle of each interval, in seconds: the position of its mean."""
        interval_s: float = self.data["interval_s"]
        return [(at + 0.5) * interval_s for at in range(len(values))]

    def one(self) -> str:
        """The scheme of a figure that draws only one."""
        return self.schemes[0]


def _alike(one: list[float], other: list[float]) -> bool:
    """Whether two capacities differ by at most `ALIKE` of their mean, as in the report."""
    apart = sum(abs(mine - its) for mine, its in zip(one, other, strict=False))
    return len(one) == len(other) and apart <= ALIKE * sum(one)


def _place(names: list[str], name: str, kind: str) -> int:
    if name not in names:
        raise ValueError(f"the run has no {kind} `{name}`; it has {', '.join(names)}")
    return names.index(name)


def nothing(what: str) -> ValueError:
    """The error of a figure without data."""
    return ValueError(f"the run has no {what}, so this figure would be empty")
