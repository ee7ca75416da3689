// The bandwidth that the scheduler granted to each device over time: what a phone knows of its own grants.

/// The grants of the devices that are shown, each once, with the course or link that gives it its look. Flows of one device
/// share its grants.
function grantsShown(s, view) {
  const sharers = isEmulated
    ? s.links.filter((link) => link.direction === view.direction).map((link, place) => ({ ...link, place, scheme: s.schemes[0].text }))
    : s.courses.filter((course) => isShown(view, course)).map((course) => ({ ...s.flows[course.flow], course, scheme: course.scheme }));
  const all = sharers.map((sharer) => ({ ...sharer, granted: s.cells
    .find((cell) => cell.scheme === sharer.scheme && cell.direction === sharer.direction)?.granted.find(({ device }) => device === sharer.device) }));
  return all.filter(({ granted }, index) => granted && all.findIndex((other) => other.granted === granted) === index);
}
function penOfGrants(s, view, shown, look) {
  if (shown.course) return penOf(s, view, shown.course, look);
  const shade = paletteOf([0, 1, 2, 5][shown.device % 4]);
  return { shade, colour: shadeOf(shade, look), type: ["solid", "dashed", "dotted"][Math.floor(shown.place / 4) % 3], marker: null, hollow: false, name: shown.name };
}
/// The capacities of the devices that are shown.
const capacitiesOfGrants = (s, shown) => {
  if (!isEmulated) return capacitiesOf(s, shown.map(({ course }) => course));
  return shown.map((link, index) => ({ index, truth: s.capacities.find((capacity) => isOfLink(link, capacity)) })).filter(({ truth }) => truth);
};

figure({
  id: "granted",
  title: "Granted bandwidth",
  note: "Lines: the transport blocks that the cell granted to the device for the first time, which is the bandwidth that BISCAY " +
    `reads from a modem${isEmulated ? ", in the direction that is chosen above" : ""}. Grey: what the last hop could have carried for it; dotted where that ` +
    "differs from curve to curve. A sender that keeps no data waiting is granted less than that.",
  also: (s) => (s.cells.some((cell) => cell.repeats_whole_grants) ? "An older version wrote this run. It did not record which of a grant's " +
    "two blocks was retransmitted, so both count as retransmitted: with two layers, lines lie below what was granted for the first time." : ""),
  wide: true,
  over: "time",
  course: true,
  applies: (s) => s.cells.some((cell) => cell.granted.length > 0),
  height: () => heightOfPanel(340),
  option(s, view, look) {
    const shown = grantsShown(s, view);
    const pens = shown.map((each) => penOfGrants(s, view, each, look));
    const truths = capacitiesOfGrants(s, shown);
    return {
      grid: { left: 64, right: 24, top: 34, bottom: 58 },
      tooltip: tipOfTime(look, (time) => [[...capacityTips(s, truths, pens, time, ""),
        ...shown.map(({ granted }, index) => [lineSwatch(pens[index]), pens[index].name, words(atTime(s, granted.new_mbps, time)),
          words(atTime(s, granted.again_mbps, time))])], ["granted (Mbit/s)", "retransmitted (Mbit/s)"]]),
      title: panelTitle(look, "granted (Mbit/s)", 4),
      xAxis: timeAxis(s, look, { name: "s", nameGap: 30 }),
      yAxis: axisOf(look, { type: "value", min: 0, splitNumber: 4 }),
      dataZoom: zoomOf(look, [0]),
      series: [
        ...capacityCurves(s, truths, pens, look),
        ...shown.flatMap(({ granted }, index) => curve(pens[index], overTime(s, granted.new_mbps), index, shown.length, look, { xAxisIndex: 0, yAxisIndex: 0 })),
      ],
    };
  },
  key: (s, view, look) => {
    const shown = grantsShown(s, view);
    const lines = shown.map((each) => penOfGrants(s, view, each, look)).map((pen) => [lineSwatch(pen), pen.name]);
    return [...capacityKey(capacitiesOfGrants(s, shown)), ...lines];
  },
  csv: (s) => [
    ["scheme", "direction", "device", "time_s", "granted_mbps", "sent_again_mbps"],
    ...s.cells.flatMap((cell) => cell.granted.flatMap(({ device, new_mbps, again_mbps }) => new_mbps.map((mbps, at) =>
      [cell.scheme, cell.direction, device, Number((at * s.interval_s).toFixed(3)), mbps, again_mbps[at]]))),
  ],
});
