// The course over time: throughput and capacity, the queueing delay that it caused, and the scheme's states.
const courseRows = (s, view) => s.courses.filter((course) => isShown(view, course) && course.stays.length > 0);
/// Whether a capacity is the one that a flow could use.
const isCapacityOf = (capacity, flow) => capacity.device === flow.device && capacity.direction === flow.direction;
/// Capacities whose curves differ by at most this part of their mean are drawn as one area.
const ALIKE = 0.01;
const areAlike = (one, other) => {
  const apart = one.capacity_mbps.reduce((sum, mbps, at) => sum + Math.abs(mbps - (other.capacity_mbps[at] ?? 0)), 0);
  return one.capacity_mbps.length === other.capacity_mbps.length && apart <= ALIKE * one.capacity_mbps.reduce((sum, mbps) => sum + mbps, 0);
};
/// The capacities that the shown flows had, each once, with the index of its first flow. A rival leaves one scheme more than
/// another, and a device has a channel of its own: there is no capacity that holds for all.
const capacitiesOf = (s, shown) => {
  const all = shown.map((course, index) => ({
    index, truth: s.capacities.find((c) => c.scheme === course.scheme && isCapacityOf(c, s.flows[course.flow])) })).filter(({ truth }) => truth);
  const distinct = all.filter(({ truth }, at) => all.findIndex((other) => other.truth === truth) === at);
  return distinct.every(({ truth }) => areAlike(distinct[0].truth, truth)) ? distinct.slice(0, 1) : distinct;
};
/// The name of a capacity: that of its flow too, if there are several capacities.
const capacityName = (truths, pen) => (truths.length > 1 ? `capacity for ${pen.name}` : "capacity");
/// Their curves: one area, or a dotted line for each in the colour of its flow.
const capacityCurves = (s, truths, pens, look) => truths.map(({ index, truth }) => ({
  name: capacityName(truths, pens[index]), type: "line", data: overTime(s, truth.capacity_mbps), showSymbol: false, silent: true, z: 1,
  emphasis: { disabled: true }, ...(truths.length > 1
    ? { lineStyle: { width: 1, type: "dotted", color: pens[index].colour }, itemStyle: { color: pens[index].colour } }
    : { lineStyle: { width: 1, color: look.muted }, areaStyle: { color: look.capacity, opacity: 1 }, itemStyle: { color: look.capacity } }) }));
/// Their entry in the key.
const capacityKey = (truths) => (truths.length > 1
  ? [[lineSwatch({ shade: null, type: "dotted", marker: null }), "capacity, in the colour of its curve"]]
  : truths.map(() => [areaSwatch("var(--capacity)"), "capacity"]));
/// Their rows in a tip at `time`; `beside` fills further cells.
const capacityTips = (s, truths, pens, time, ...beside) => truths.map(({ index, truth }) => [
  truths.length > 1 ? lineSwatch({ ...pens[index], type: "dotted", marker: null }) : areaSwatch("var(--capacity)"),
  capacityName(truths, pens[index]), words(atTime(s, truth.capacity_mbps, time)), ...beside]);
/// Heights in pixels. On paper a figure must fit a page, however many rows of states it has.
const courseSizes = (s, view) => {
  const rows = courseRows(s, view).length;
  return onPaper()
    ? { throughput: 170, delay: 110, gap: 40, ribbon: Math.min(Math.max(Math.floor(300 / rows), 6), 18), below: 36 }
    : { throughput: 250, delay: 170, gap: 44, ribbon: 26, below: 76 };
};

figure({
  id: "course",
  title: "Over time",
  note: "Grey: what the last hop could have carried for the device; dotted where that differs from curve to curve. " +
    "Ticks: packets dropped or lost. " +
    "Ribbon: the state of each controller. Drag the slider, or pinch, to zoom all figures over time.",
  wide: true,
  over: "time",
  course: true,
  applies: (s) => s.courses.length > 0 && !isEmulated,
  height(s, view) {
    const { throughput, delay, gap, ribbon, below } = courseSizes(s, view);
    return 34 + throughput + delay + 2 * gap + courseRows(s, view).length * ribbon + below;
  },
  option(s, view, look) {
    const shown = s.courses.filter((course) => isShown(view, course));
    const rows = courseRows(s, view);
    const sizes = courseSizes(s, view);
    const rowHeight = sizes.ribbon;
    const ribbonTop = 34 + sizes.throughput + sizes.delay + 2 * sizes.gap;
    const pens = shown.map((course) => penOf(s, view, course, look));
    const line = (index, values, grid) =>
      curve(pens[index], overTime(s, values), index, shown.length, look, { xAxisIndex: grid, yAxisIndex: grid });
    const truths = capacitiesOf(s, shown);
    const drops = shown.flatMap((course, index) => course.dropped.length === 0 ? [] : [{
      name: `${pens[index].name}: dropped`, type: "scatter", xAxisIndex: 1, yAxisIndex: 1, symbol: "rect", symbolSize: [2, 12],
      symbolOffset: [0, -6], data: course.dropped.map(([at, packets]) => [(at + 0.5) * s.interval_s, 0, packets]),
      itemStyle: { color: pens[index].colour }, z: 4, emphasis: { disabled: true }, tooltip: { show: false },
    }]);
    const ribbon = {
      name: "state", type: "custom", xAxisIndex: 2, yAxisIndex: 2, clip: true, encode: { x: [0, 1], y: 2 },
      data: rows.flatMap((course, row) => course.stays.map(([start, end, state]) => ({ value: [start, end, row, state] }))),
      renderItem(params, api) {
        const course = rows[api.value(2)];
        const state = course.states[api.value(3)];
        const [left, middle] = api.coord([api.value(0), api.value(2)]);
        const [right] = api.coord([api.value(1), api.value(2)]);
        const area = params.coordSys;
        const shape = echarts.graphic.clipRectByRect(
          { x: left, y: middle - rowHeight / 2 + 2, width: Math.max(right - left, 0.6), height: rowHeight - 4 },
          { x: area.x, y: area.y, width: area.width, height: area.height });
        if (!shape) return;
        return { type: "rect", shape, style: { fill: stateFill(state, look) },
          textContent: shape.width < 9 * state.length + 8 || rowHeight < 18 ? undefined
            : { style: { text: state, fill: look.text, fontSize: 13, fontFamily: look.font, stroke: look.surface, lineWidth: 0, backgroundColor: look.surface, padding: [1, 4] } },
          textConfig: { position: "inside" } };
      },
    };
    const stateAt = (course, time) => course.states[course.stays.find(([start, end]) => start <= time && time < end)?.[2]];
    // Room for the names of the ribbon's rows.
    const left = look.width < 600 ? 64 : 104;
    const grid = { left, right: 24 };
    return {
      axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: look.muted } },
      tooltip: tipOfTime(look, (time) => [
        [...capacityTips(s, truths, pens, time, "", ""),
          ...shown.map((course, index) => [lineSwatch(pens[index]), pens[index].name, words(atTime(s, course.throughput_mbps, time)),
            words(atTime(s, course.queueing_delay_ms, time)), stateAt(course, time) ?? "–"])],
        ["throughput (Mbit/s)", "queueing delay (ms)", ...(rows.length ? ["state"] : [])]]),
      title: [
        panelTitle(look, "throughput (Mbit/s)", 4),
        panelTitle(look, "queueing delay (ms)", 34 + sizes.throughput + sizes.gap - 32),
        ...(rows.length ? [panelTitle(look, "state", ribbonTop - 32)] : []),
      ],
      grid: [
        { ...grid, top: 34, height: sizes.throughput },
        { ...grid, top: 34 + sizes.throughput + sizes.gap, height: sizes.delay },
        { ...grid, top: ribbonTop, height: rows.length * rowHeight },
      ],
      xAxis: [
        timeAxis(s, look, { gridIndex: 0, axisLabel: { show: false } }),
        timeAxis(s, look, { gridIndex: 1, ...(rows.length ? { axisLabel: { show: false } } : {}) }),
        timeAxis(s, look, { gridIndex: 2, name: "s", nameLocation: "end", nameGap: 6, splitLine: { show: false }, axisPointer: { label: { show: false } } }),
      ],
      yAxis: [
        axisOf(look, { gridIndex: 0, type: "value", min: 0, splitNumber: 4 }),
        axisOf(look, { gridIndex: 1, type: "value", min: 0, splitNumber: 3 }),
        axisOf(look, { gridIndex: 2, type: "category", inverse: true, data: rows.map((course) => penOf(s, view, course, look).name),
          axisLine: { show: false }, axisTick: { show: false }, splitLine: { show: false },
          axisLabel: { ...axisText(look), fontSize: Math.min(rowHeight - 2, 14), interval: 0, width: left - 8, overflow: "truncate", margin: 4 } }),
      ],
      dataZoom: zoomOf(look, [0, 1, 2], onPaper() ? undefined : left),
      series: [
        ...capacityCurves(s, truths, pens, look),
        ...shown.flatMap((course, index) => line(index, course.throughput_mbps, 0)),
        ...shown.flatMap((course, index) => line(index, course.queueing_delay_ms, 1)),
        ...drops,
        ribbon,
      ],
    };
  },
  key(s, view, look) {
    const shown = s.courses.filter((course) => isShown(view, course));
    const lines = shown.map((course) => penOf(s, view, course, look)).map((pen) => [lineSwatch(pen), pen.name]);
    const states = [...new Set(shown.flatMap((course) => course.states))];
    return [...capacityKey(capacitiesOf(s, shown)), ...lines, ...(states.length ? [[null, "States:"]] : []), ...states.map((state) => [stateSwatch(state), state])];
  },
  csv: (s) => [
    ["scheme", "flow", "time_s", "throughput_mbps", "queueing_delay_ms", "queueing_delay_max_ms", "dropped_packets", "capacity_mbps"],
    ...s.courses.flatMap((course) => {
      const truth = s.capacities.find((c) => c.scheme === course.scheme && isCapacityOf(c, s.flows[course.flow]));
      const dropped = new Map(course.dropped);
      return course.throughput_mbps.map((throughput, index) => [
        course.scheme, s.flows[course.flow].flow, Number((index * s.interval_s).toFixed(3)), throughput,
        course.queueing_delay_ms[index], course.queueing_delay_max_ms[index], dropped.get(index) ?? 0, truth?.capacity_mbps[index]]);
    }),
  ],
});
