// How far apart the departures of real time and of virtual time are.
figure({
  id: "agreement-cdf",
  compared: true,
  title: "How far apart departures are",
  note: "Part of the packets whose departures in real time and in virtual time are no further apart. As sent: virtual time sends each packet when it was sent. " +
    "As scheduled: when it was to be sent. The line marks what is allowed to 99 of 100.",
  wide: true,
  applies: (s) => s.agreement?.cdfs.some(([, points]) => points.length > 0),
  height: () => heightOfPanel(380),
  option(s, view, look) {
    const pens = agreementPens(look);
    // A logarithmic axis has no zero.
    const shown = s.agreement.cdfs.map(([name, points]) => [name, points.map(([apart, part]) => [Math.max(apart, 1e-3), part])]);
    return {
      grid: { left: 64, right: 24, top: 34, bottom: 58 },
      tooltip: tipOfItem(look, ({ seriesName, value }) => [seriesName,
        [["apart, at most", `${words(value[0])} ms`], ["part of packets", `${words(value[1] * 100)} %`]]]),
      title: panelTitle(look, "part of packets", 4),
      xAxis: logAxis(look, [s.agreement.most_ms, ...shown.flatMap(([, points]) => points.map(([apart]) => apart))],
        { name: "apart (ms)", nameGap: 34 }),
      yAxis: axisOf(look, { type: "value", min: 0, max: 1 }),
      series: shown.flatMap(([name, points], index) => curve({ ...pens[index + 1], name, marker: null }, points, index, shown.length, look, {
        step: "end", triggerLineEvent: true,
        ...(index === 0 ? { markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: look.muted, type: "dashed" }, data: [{ xAxis: s.agreement.most_ms }] } } : {}),
      })),
    };
  },
  key: (s, view, look) => s.agreement.cdfs.map(([name], index) => [lineSwatch({ ...agreementPens(look)[index + 1], marker: null }), name]),
  csv: (s) => [["packets", "apart_ms", "part_of_packets"], ...s.agreement.cdfs.flatMap(([name, points]) => points.map(([apart, part]) => [name, apart, part]))],
});

/// Pens of real time, of packets as sent, and of packets as scheduled.
const agreementPens = (look) => ["solid", "dashed", "dotted"].map((type, index) => {
  const shade = paletteOf(index);
  return { shade, colour: shadeOf(shade, look), type, marker: null, hollow: false };
});
