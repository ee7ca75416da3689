// How fairly flows share, second by second.
figure({
  id: "jain",
  title: "Fairness",
  note: "Jain's index per second over the flows that take all they can get and are active together, those of each direction by themselves: 1 is an equal share. " +
    "Solid: of bytes delivered. Dotted: of PRBs given.",
  over: "time",
  course: true,
  applies: (s) => s.jain.some((course) => course.bytes.length + course.prbs.length > 0),
  height: () => heightOfPanel(380),
  option(s, view, look) {
    const shown = s.jain.filter((course) => view.schemes.has(course.scheme));
    const steps = (course, kind, windows) => ({
      name: [jainName(s, course), kind].filter(Boolean).join(": "), type: "line", step: "end", showSymbol: windows.length < 2,
      data: gapped(windows), connectNulls: false, emphasis: { disabled: true },
      lineStyle: { width: 2, type: kind ? "dotted" : "solid", color: shadeOf(styleOf(s, course.scheme).colour, look) },
      itemStyle: { color: shadeOf(styleOf(s, course.scheme).colour, look) },
    });
    const isOfPrbs = shown.some((course) => course.prbs.length > 0);
    return {
      grid: { left: 64, right: 24, top: 34, bottom: 58 },
      tooltip: tipOfTime(look, (time) => [shown.map((course) => [schemeSwatch(styleOf(s, course.scheme)), jainName(s, course),
        jainAt(course.bytes, time), ...(isOfPrbs ? [jainAt(course.prbs, time)] : [])]), ["Jain, bytes", ...(isOfPrbs ? ["Jain, PRBs"] : [])]]),
      title: panelTitle(look, "Jain's index", 4),
      xAxis: timeAxis(s, look, { name: "s", nameGap: 30 }),
      yAxis: axisOf(look, { type: "value", max: 1, min: (range) => Math.max(0, Math.min(0.5, Math.floor(range.min * 10) / 10)) }),
      dataZoom: zoomOf(look, [0]),
      series: shown.flatMap((course) => [steps(course, "", course.bytes), ...(course.prbs.length ? [steps(course, "PRBs", course.prbs)] : [])]),
    };
  },
  key: (s, view, look) => s.jain.filter((course) => view.schemes.has(course.scheme))
    .map((course) => [schemeSwatch(styleOf(s, course.scheme)), jainName(s, course)]),
  csv: (s) => [
    ["scheme", "direction", "of", "time_s", "jain", "sharers"],
    ...s.jain.flatMap((course) => [["bytes", course.bytes], ["prbs", course.prbs]].flatMap(([of, windows]) =>
      windows.map((window) => [course.scheme, course.direction, of, window.time_s, window.jain, window.sharers]))),
  ],
});

/// The name of a curve. It includes the direction if flows go both ways.
const jainName = (s, course) =>
  s.flows.some((flow) => flow.direction !== course.direction) ? `${course.scheme}, ${course.direction}` : course.scheme;

/// The value of Jain's index in the second that contains an instant.
const jainAt = (windows, time) => words(windows.find((window) => window.time_s <= time && time < window.time_s + 1)?.jain);

/// Steps of one second each, with a gap where nobody shares.
function gapped(windows) {
  const points = [];
  windows.forEach((window, index) => {
    points.push([window.time_s, window.jain]);
    if (windows[index + 1]?.time_s !== window.time_s + 1) points.push([window.time_s + 1, window.jain], [window.time_s + 1, null]);
  });
  return points;
}
