// What happened over time: throughput in what could be had, the queue it made, and what the scheme thought it did.
const courseRows = (s, view) => s.courses.filter((course) => isShown(view, course) && course.stays.length > 0);
/// Whether a capacity is the one that a flow could use.
const isCapacityOf = (capacity, flow) => capacity.device === flow.device && capacity.direction === flow.direction;
const RIBBON = 26;
const COURSE = { throughput: 250, delay: 170, gap: 44 };

figure({
  id: "course",
  title: "Over time",
  note: "Grey: what the last hop could have carried for the device. Ticks: packets dropped or lost. " +
    "Ribbon: the state of each controller. Drag the slider, or pinch, to zoom all figures over time.",
  wide: true,
  over: "time",
  course: true,
  applies: (s) => s.courses.length > 0,
  height: (s, view) => 34 + COURSE.throughput + COURSE.delay + 2 * COURSE.gap + courseRows(s, view).length * RIBBON + 76,
  option(s, view, look) {
    const shown = s.courses.filter((course) => isShown(view, course));
    const rows = courseRows(s, view);
    const ribbonTop = 34 + COURSE.throughput + COURSE.delay + 2 * COURSE.gap;
    const pens = shown.map((course) => penOf(s, view, course, look));
    const line = (course, index, values, grid) => ({
      name: pens[index].name, type: "line", xAxisIndex: grid, yAxisIndex: grid, showSymbol: false, connectNulls: false,
      data: overTime(s, values), lineStyle: { width: 2, type: pens[index].type, color: pens[index].colour },
      itemStyle: { color: pens[index].colour }, emphasis: { disabled: true }, z: 3,
    });
    const truth = s.capacities.filter((c) => view.schemes.has(c.scheme) && isCapacityOf(c, s.flows[shown[0]?.flow ?? 0])).slice(0, 1);
    const capacity = truth.map((c) => ({
      name: "capacity", type: "line", data: overTime(s, c.capacity_mbps), showSymbol: false, silent: true, z: 1,
      lineStyle: { width: 0 }, areaStyle: { color: look.capacity, opacity: 0.7 }, itemStyle: { color: look.capacity },
    }));
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
          { x: left, y: middle - RIBBON / 2 + 2, width: Math.max(right - left, 0.6), height: RIBBON - 4 },
          { x: area.x, y: area.y, width: area.width, height: area.height });
        if (!shape) return;
        return { type: "rect", shape, style: { fill: stateColour(state, course.states) },
          textContent: shape.width < 10 * state.length ? undefined
            : { style: { text: state, fill: "#ffffff", fontSize: 14, fontFamily: look.font } },
          textConfig: { position: "inside" } };
      },
      tooltip: { trigger: "item", formatter: ({ value }) => {
        const course = rows[value[2]];
        return `<b>${course.states[value[3]]}</b> (${course.scheme}, ${s.flows[course.flow].flow})<br>${words(value[0])} s to ${words(value[1])} s`;
      } },
    };
    // Room for the names of the ribbon's rows.
    const left = innerWidth < 600 ? 64 : 104;
    const grid = { left, right: 24 };
    return {
      axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: look.muted } },
      tooltip: tooltipOf(look, { trigger: "axis", valueFormatter: (value) => words(value), axisPointer: { type: "line" } }),
      title: [
        panelTitle(look, "throughput (Mbit/s)", 4),
        panelTitle(look, "queueing delay (ms)", 34 + COURSE.throughput + COURSE.gap - 32),
        ...(rows.length ? [panelTitle(look, "state", ribbonTop - 32)] : []),
      ],
      grid: [
        { ...grid, top: 34, height: COURSE.throughput },
        { ...grid, top: 34 + COURSE.throughput + COURSE.gap, height: COURSE.delay },
        { ...grid, top: ribbonTop, height: rows.length * RIBBON },
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
          axisLabel: { ...axisText(look), interval: 0, width: left - 8, overflow: "truncate", margin: 4 } }),
      ],
      dataZoom: zoomOf(look, [0, 1, 2], left),
      series: [
        ...capacity,
        ...shown.map((course, index) => line(course, index, course.throughput_mbps, 0)),
        ...shown.map((course, index) => line(course, index, course.queueing_delay_ms, 1)),
        ...drops,
        ribbon,
      ],
    };
  },
  key(s, view, look) {
    const shown = s.courses.filter((course) => isShown(view, course));
    const lines = shown.map((course) => penOf(s, view, course, look)).map((pen) => [pen.colour, pen.name, pen.type !== "solid"]);
    const states = new Map(shown.flatMap((course) => course.states.map((state) => [state, stateColour(state, course.states)])));
    return [[look.capacity, "capacity"], ...lines, ...(states.size ? [[null, "States:"]] : []), ...[...states].map(([state, colour]) => [colour, state])];
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
