// The course over time of one direction of a device: its connections' throughput beside the capacity, and their queueing
// delay. There is one such figure per link, so they are made for a scenario and not listed.

const linkSizes = () => (onPaper() ? { throughput: 190, delay: 130, below: 36 } : { throughput: 230, delay: 160, below: 76 });
const LINK_GAP = 44;

const linkFigure = (s, link) => {
  const truth = s.capacities.find((capacity) => isOfLink(link, capacity));
  const shownOf = (view) => s.courses.filter((course) => view.flows.has(course.flow) && isOfLink(link, s.flows[course.flow]));
  return {
    id: `link-${link.device}-${link.direction}`,
    title: `Over time ${link.name}`,
    note: "Grey: what the last hop could have carried. Ticks: packets dropped or lost. Drag the slider, or pinch, to zoom all figures over time.",
    wide: true,
    over: "time",
    course: true,
    height() {
      const { throughput, delay, below } = linkSizes();
      return 34 + throughput + LINK_GAP + delay + below;
    },
    option(_, view, look) {
      const shown = shownOf(view);
      const pens = shown.map((course) => penOf(s, view, course, look));
      const sizes = linkSizes();
      const delayTop = 34 + sizes.throughput + LINK_GAP;
      // A short connection may be active in a single interval, and a line needs two.
      const line = (index, values, grid) => curve(pens[index], overTime(s, values), index, shown.length, look,
        { xAxisIndex: grid, yAxisIndex: grid, showSymbol: values.filter((value) => value !== null).length < 2, symbol: "circle", symbolSize: 5 });
      const drops = shown.flatMap((course, index) => course.dropped.length === 0 ? [] : [{
        name: `${pens[index].name}: dropped`, type: "scatter", xAxisIndex: 1, yAxisIndex: 1, symbol: "rect", symbolSize: [2, 12], symbolOffset: [0, -6],
        data: course.dropped.map(([at, packets]) => [(at + 0.5) * s.interval_s, 0, packets]),
        itemStyle: { color: pens[index].colour }, z: 4, emphasis: { disabled: true }, tooltip: { show: false },
      }]);
      const left = look.width < 600 ? 48 : 64;
      const grid = { left, right: 24 };
      const at = (time, values) => words(atTime(s, values, time));
      return {
        axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: look.muted } },
        tooltip: tipOfTime(look, (time) => [
          [...(truth ? [[areaSwatch("var(--capacity)"), "capacity", at(time, truth.capacity_mbps), "", ""]] : []),
            ...shown.map((course, index) => [lineSwatch(pens[index]), pens[index].name, at(time, course.throughput_mbps), at(time, course.queueing_delay_ms),
              String(droppedAt(s, course, time))])],
          ["Mbit/s", "queueing (ms)", "dropped"]]),
        title: [panelTitle(look, "throughput (Mbit/s)", 4), panelTitle(look, "queueing delay (ms)", delayTop - 32)],
        grid: [{ ...grid, top: 34, height: sizes.throughput }, { ...grid, top: delayTop, height: sizes.delay }],
        xAxis: [
          timeAxis(s, look, { gridIndex: 0, axisLabel: { show: false } }),
          timeAxis(s, look, { gridIndex: 1, name: "s", nameLocation: "end", nameGap: 6 }),
        ],
        yAxis: [
          axisOf(look, { gridIndex: 0, type: "value", min: 0, splitNumber: 4 }),
          axisOf(look, { gridIndex: 1, type: "value", min: 0, splitNumber: 3 }),
        ],
        dataZoom: zoomOf(look, [0, 1], onPaper() ? undefined : left),
        series: [
          ...(truth ? [{ name: "capacity", type: "line", data: overTime(s, truth.capacity_mbps), showSymbol: false, silent: true, z: 1,
            lineStyle: { width: 1, color: look.muted }, areaStyle: { color: look.capacity, opacity: 1 }, itemStyle: { color: look.capacity }, emphasis: { disabled: true } }] : []),
          ...shown.flatMap((course, index) => line(index, course.throughput_mbps, 0)),
          ...shown.flatMap((course, index) => line(index, course.queueing_delay_ms, 1)),
          ...drops,
        ],
      };
    },
    key: (_, view, look) => [...(truth ? [[areaSwatch("var(--capacity)"), "capacity"]] : []),
      ...shownOf(view).map((course) => penOf(s, view, course, look)).map((pen) => [lineSwatch(pen), pen.name])],
    csv: () => [
      ["connection", "time_s", "throughput_mbps", "queueing_delay_ms", "queueing_delay_max_ms", "dropped_packets", "capacity_mbps"],
      ...s.courses.filter((course) => isOfLink(link, s.flows[course.flow])).flatMap((course) => {
        const dropped = new Map(course.dropped);
        return course.throughput_mbps.map((throughput, index) => [s.flows[course.flow].flow, Number((index * s.interval_s).toFixed(3)), throughput,
          course.queueing_delay_ms[index], course.queueing_delay_max_ms[index], dropped.get(index) ?? 0, truth?.capacity_mbps[index]]);
      }),
    ],
  };
};

/// How many packets of a connection were dropped in the interval that holds an instant.
const droppedAt = (s, course, time) => course.dropped.find(([index]) => index === Math.floor(time / s.interval_s))?.[1] ?? 0;
