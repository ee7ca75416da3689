// A scheme's estimates of the path's rate, beside the true rate.
const estimateCourses = (s, view) =>
  s.courses.filter((course) => course.scheme === view.scheme && view.flows.has(course.flow) && course.estimates.length > 0);

/// Whether both panels fit beside each other.
const isBeside = (look) => look.width >= 900;
/// Heights of the panels, and the top of the second, where one stands below the other.
const estimateBelow = () => {
  const [course, errors] = onPaper() ? [170, 90] : [250, 140];
  return { course, errors, top: 34 + course + 78 };
};
const estimateName = (s, shown, course, estimate) => (shown.length > 1 ? `${estimate.words} · ${s.flows[course.flow].flow}` : estimate.words);
const estimateLine = (index) => ({ shade: paletteOf(index), type: ["solid", "dashed", "dotted"][index % 3], marker: null });

figure({
  id: "estimate",
  title: "Estimate against truth",
  note: "Lines: the scheme's own estimates. Grey: what the last hop could have carried for the device. " +
    "Right (or below): how far each estimate was off, over all intervals of the run.",
  wide: true,
  over: "time",
  one: true,
  course: true,
  applies: (s) => s.courses.some((course) => course.estimates.length > 0),
  height: (s, view, look) => (isBeside(look) ? 380 : estimateBelow().top + estimateBelow().errors + 58),
  option(s, view, look) {
    const shown = estimateCourses(s, view);
    const curves = shown.flatMap((course) => course.estimates.map((estimate) => ({
      estimate, name: estimateName(s, shown, course, estimate) })));
    const truths = capacitiesOf(s, shown);
    const pens = shown.map((course) => ({ ...penOf(s, { ...view, schemes: new Set([view.scheme]) }, course, look), name: s.flows[course.flow].flow }));
    const pen = (index) => ({ width: 2, type: estimateLine(index).type, color: shadeOf(paletteOf(index), look) });
    const ink = (index) => ({ color: shadeOf(paletteOf(index), look) });
    const beside = isBeside(look);
    const below = estimateBelow();
    const errorAt = (estimate, percent) => estimate.error_cdf.findLast(([error]) => error <= percent)?.[1] ?? 0;
    return {
      grid: beside
        ? [{ left: 64, right: "42%", top: 34, bottom: 58 }, { left: "66%", right: 24, top: 34, bottom: 58 }]
        : [{ left: 64, right: 24, top: 34, height: below.course }, { left: 64, right: 24, top: below.top, height: below.errors }],
      tooltip: tooltipOf(look, { trigger: "axis", formatter: ([{ axisIndex, axisValue }]) => axisIndex === 0
        ? tip(`at ${words(axisValue)} s`, [
          ...capacityTips(s, truths, pens, axisValue),
          ...curves.map(({ estimate, name }, index) => [lineSwatch(estimateLine(index)), name, words(atTime(s, estimate.mbps, axisValue))]),
        ], ["Mbit/s"])
        : tip(`off by at most ${words(axisValue)} %`, curves.map(({ estimate, name }, index) =>
          [lineSwatch(estimateLine(index)), name, words(errorAt(estimate, axisValue))]), ["part of intervals"]) }),
      title: [panelTitle(look, "Mbit/s", 4), { ...panelTitle(look, "part of intervals", beside ? 4 : below.top - 32), ...(beside ? { left: "62%" } : {}) }],
      xAxis: [
        timeAxis(s, look, { gridIndex: 0, name: "s", nameLocation: "end", nameGap: 6 }),
        axisOf(look, { gridIndex: 1, type: "value", name: "off by (%)", nameGap: 32, min: 0, max: (range) => Math.min(Math.ceil(range.max / 10) * 10, 100) }),
      ],
      yAxis: [
        axisOf(look, { gridIndex: 0, type: "value", min: 0 }),
        axisOf(look, { gridIndex: 1, type: "value", min: 0, max: 1, splitNumber: 2 }),
      ],
      dataZoom: zoomOf(look, [0]),
      series: [
        ...capacityCurves(s, truths, pens, look),
        ...curves.map(({ estimate, name }, index) => ({ name, type: "line", data: overTime(s, estimate.mbps), showSymbol: false,
          lineStyle: pen(index), itemStyle: ink(index), emphasis: { disabled: true } })),
        ...curves.map(({ estimate, name }, index) => ({ name, type: "line", step: "end", xAxisIndex: 1, yAxisIndex: 1,
          data: estimate.error_cdf, showSymbol: false, lineStyle: pen(index), itemStyle: ink(index), emphasis: { disabled: true } })),
      ],
    };
  },
  key(s, view, look) {
    const shown = estimateCourses(s, view);
    const curves = shown.flatMap((course) => course.estimates.map((estimate) => estimateName(s, shown, course, estimate) +
      (estimate.median_error_percent === null ? "" : `, median error ${words(estimate.median_error_percent)} %`)));
    return [...capacityKey(capacitiesOf(s, shown)), ...curves.map((name, index) => [lineSwatch(estimateLine(index)), name])];
  },
  csv: (s) => [
    ["scheme", "flow", "estimate", "time_s", "estimate_mbps", "capacity_mbps"],
    ...s.courses.flatMap((course) => {
      const truth = s.capacities.find((c) => c.scheme === course.scheme && isCapacityOf(c, s.flows[course.flow]));
      return course.estimates.flatMap((estimate) => estimate.mbps.map((mbps, index) => [
        course.scheme, s.flows[course.flow].flow, estimate.name, Number((index * s.interval_s).toFixed(3)), mbps, truth?.capacity_mbps[index]]));
    }),
  ],
});
