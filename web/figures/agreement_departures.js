// What left over time, in real and in virtual time, and how far apart single departures are.
figure({
  id: "agreement-departures",
  compared: true,
  title: "Departures",
  note: "Above: what left the network. Below: the largest difference between a packet's departures in real and in virtual time, packets as sent.",
  wide: true,
  applies: (s) => s.agreement?.courses.length > 0,
  height: (s) => 40 + s.agreement.courses.length * 320,
  option(s, view, look) {
    const { courses, interval_s, start_s, end_s } = s.agreement;
    const pens = agreementPens(look);
    const line = (values, pen, name, panel, more) => ({
      name, type: "line", xAxisIndex: panel, yAxisIndex: panel, showSymbol: false, connectNulls: false, emphasis: { disabled: true },
      data: values.map((value, index) => [start_s + (index + 0.5) * interval_s, value]),
      lineStyle: { width: 2, type: pen.type, color: pen.colour, ...more }, itemStyle: { color: pen.colour },
    });
    const panels = courses.flatMap((course, index) => [{ course, top: 34 + index * 320, height: 140, isRate: true }, { course, top: 230 + index * 320, height: 70, isRate: false }]);
    return {
      grid: panels.map(({ top, height }) => ({ left: 64, right: 24, top, height })),
      title: panels.map(({ course, top, isRate }) => panelTitle(look, isRate ? `Mbit/s, ${course.name}` : `apart, ms, ${course.name}`, top - 28)),
      tooltip: tooltipOf(look, { trigger: "item", formatter: ({ seriesName, value }) => tip(seriesName, [["at", `${words(value[0])} s`], ["", words(value[1])]]) }),
      xAxis: panels.map((_, panel) => axisOf(look, { type: "value", gridIndex: panel, min: start_s, max: end_s, axisLabel: { ...axisText(look), hideOverlap: true, showMinLabel: false, showMaxLabel: false }, ...(panel === panels.length - 1 ? { name: "s", nameGap: 26 } : {}) })),
      yAxis: panels.map(({ isRate }, panel) => axisOf(look, { type: "value", gridIndex: panel, min: 0, splitNumber: isRate ? 5 : 2 })),
      series: panels.flatMap(({ course, isRate }, panel) => (isRate
        ? [[course.real_mbps, "real time"], [course.as_sent_mbps, "virtual time, as sent"], [course.as_scheduled_mbps, "virtual time, as scheduled"]]
            .map(([values, name], index) => line(values, pens[index], name, panel, index ? {} : { width: 6, opacity: 0.4 }))
        : [line(course.apart_ms, pens[0], "apart", panel, {})])),
    };
  },
  key: (s, view, look) => ["real time", "virtual time, as sent", "virtual time, as scheduled"].map((name, index) => [lineSwatch(agreementPens(look)[index]), name]),
  csv: (s) => [
    ["direction", "time_s", "real_mbps", "as_sent_mbps", "as_scheduled_mbps", "apart_ms"],
    ...s.agreement.courses.flatMap((course) => course.real_mbps.map((mbps, index) =>
      [course.name, s.agreement.start_s + (index + 0.5) * s.agreement.interval_s, mbps, course.as_sent_mbps[index], course.as_scheduled_mbps[index], course.apart_ms[index]])),
  ],
});
