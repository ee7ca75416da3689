// How long packets took.
figure({
  id: "delay-cdf",
  title: "Delay of packets",
  note: "Part of the delivered packets whose one-way delay was no longer.",
  course: true,
  applies: (s) => s.courses.some((course) => course.one_way_delay_cdf.length > 0),
  height: () => 380,
  option(s, view, look) {
    const shown = s.courses.filter((course) => isShown(view, course));
    const pens = shown.map((course) => penOf(s, view, course, look));
    return {
      grid: { left: 64, right: 24, top: 34, bottom: 58 },
      tooltip: tooltipOf(look, {
        trigger: "item",
        formatter: ({ seriesName, value }) => `<b>${seriesName}</b><br>${words(value[1] * 100)} % took at most ${words(value[0])} ms`,
      }),
      title: panelTitle(look, "part of packets", 4),
      xAxis: logAxis(look, shown.flatMap((course) => course.one_way_delay_cdf.map(([delay]) => delay)),
        { name: "one-way delay (ms)", nameGap: 34 }),
      yAxis: axisOf(look, { type: "value", min: 0, max: 1 }),
      series: shown.map((course, index) => ({
        name: pens[index].name, type: "line", step: "end", data: course.one_way_delay_cdf, symbolSize: 9, showSymbol: false,
        triggerLineEvent: true,
        lineStyle: { width: 2, type: pens[index].type, color: pens[index].colour }, itemStyle: { color: pens[index].colour },
      })),
    };
  },
  key: (s, view, look) => s.courses.filter((course) => isShown(view, course))
    .map((course) => penOf(s, view, course, look)).map((pen) => [pen.colour, pen.name, pen.type !== "solid"]),
  csv: (s) => [
    ["scheme", "flow", "one_way_delay_ms", "part_of_packets"],
    ...s.courses.flatMap((course) => course.one_way_delay_cdf.map(([delay, part]) => [course.scheme, s.flows[course.flow].flow, delay, part])),
  ],
});
