// The distribution of one-way delay.
figure({
  id: "delay-cdf",
  title: "Delay of packets",
  note: "Part of the delivered packets whose one-way delay was no longer.",
  course: true,
  applies: (s) => s.courses.some((course) => course.one_way_delay_cdf.length > 0),
  height: () => heightOfPanel(380),
  option(s, view, look) {
    const shown = s.courses.filter((course) => isShown(view, course));
    const pens = shown.map((course) => penOf(s, view, course, look));
    return {
      grid: { left: 64, right: 24, top: 34, bottom: 58 },
      tooltip: tipOfItem(look, ({ seriesName, value }) => [seriesName,
        [["one-way delay, at most", `${words(value[0])} ms`], ["part of packets", `${words(value[1] * 100)} %`]]]),
      title: panelTitle(look, "part of packets", 4),
      xAxis: logAxis(look, shown.flatMap((course) => course.one_way_delay_cdf.map(([delay]) => delay)),
        { name: "one-way delay (ms)", nameGap: 34 }),
      yAxis: axisOf(look, { type: "value", min: 0, max: 1 }),
      series: shown.flatMap((course, index) => curve(pens[index], course.one_way_delay_cdf, index, shown.length, look,
        { step: "end", symbolSize: 9, triggerLineEvent: true })),
    };
  },
  key: (s, view, look) => s.courses.filter((course) => isShown(view, course))
    .map((course) => penOf(s, view, course, look)).map((pen) => [lineSwatch(pen), pen.name]),
  csv: (s) => [
    ["scheme", "flow", "one_way_delay_ms", "part_of_packets"],
    ...s.courses.flatMap((course) => course.one_way_delay_cdf.map(([delay, part]) => [course.scheme, s.flows[course.flow].flow, delay, part])),
  ],
});
