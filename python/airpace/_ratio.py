"""Comparison of two schemes by pairs of runs under the same conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from airpace import _airpace
from airpace._airpace import Table


class Ratio(NamedTuple):
    """Ratio of a metric of one scheme to that of another, over pairs of runs under the same conditions.

    What a condition does to both schemes of a pair alike cancels in their ratio, so that pairs show differences that
    are smaller than the deviation over seeds.
    """

    #: Geometric mean of the ratios.
    value: float
    #: Lower end of the interval that holds it with 95 % confidence; `None` for fewer than five pairs or equal ratios.
    low: float | None
    #: Upper end of the interval.
    high: float | None
    #: Number of pairs.
    pairs: int


def ratio_of(
    results: Table,
    scheme: str,
    reference: str,
    metric: str,
    flow: str | None,
    *,
    condition: Sequence[str],
) -> Ratio:
    """The ratio over all conditions that both schemes have: equal values in the columns `condition`.

    Several values under one condition count as their mean.
    """
    if metric not in results.column_names:
        raise ValueError(f"no metric is called {metric!r}; there are {', '.join(results.column_names)}")
    ones = _by_condition(results, scheme, metric, flow, condition)
    others = _by_condition(results, reference, metric, flow, condition)
    ratios = [one / others[at] for at, one in ones.items() if others.get(at)]
    found = _airpace.geometric_mean(ratios)
    if found is None:
        raise ValueError(
            f"{scheme!r} and {reference!r} have no common condition with a {metric!r} above 0, so they have no ratio"
        )
    value, interval = found
    low, high = (None, None) if interval is None else interval
    return Ratio(value, low, high, len(ratios))


def _by_condition(
    results: Table, scheme: str, metric: str, flow: str | None, condition: Sequence[str]
) -> dict[tuple[object, ...], float]:
    under_test = results["scheme"] == scheme
    if not under_test.any():
        known = ", ".join(dict.fromkeys(map(str, results["scheme"])))
        raise ValueError(f"no run has the scheme {scheme!r}; there are {known}")
    rows = under_test & (results["flow_scheme"] == scheme)
    labels = results["flow_label"]
    label = flow if flow is not None else next(iter(labels[rows]), None)
    rows &= labels == label
    if not rows.any():
        known = ", ".join(dict.fromkeys(map(str, labels[under_test])))
        raise ValueError(f"no flow called {label!r} runs {scheme!r}; there are {known}")
    values: dict[tuple[object, ...], list[float]] = {}
    columns = [results[name][rows].tolist() for name in condition]
    for at, value in zip(zip(*columns, strict=True), results[metric][rows].tolist(), strict=True):
        values.setdefault(at, []).append(value)
    means = {at: sum(each) / len(each) for at, each in values.items()}
    return {at: mean for at, mean in means.items() if not math.isnan(mean)}
