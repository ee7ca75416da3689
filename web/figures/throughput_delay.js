// Pantheon's figure: up and to the right is better.
// Flows that take all they can get: a competitor with a rate of its own is no contestant.
const contestants = (s) => s.rows.filter((row) => row.point && s.flows.find((flow) => flow.flow === row.flow)?.greedy);

figure({
  id: "throughput-delay",
  title: "Throughput against delay",
  note: "Up and to the right is better. Marker: mean over seeds of throughput and of the 95th percentile of one-way delay. " +
    "Bar: from the 25th to the 75th percentile of the throughput per 100 ms. Small points: single seeds.",
  wide: true,
  applies: (s) => contestants(s).length > 0,
  height: () => (innerWidth < 600 ? 420 : 480),
  option(s, view, look) {
    const rows = contestants(s);
    const several = new Set(rows.map((row) => row.flow)).size > 1;
    // Of several flows, the first has the name; the others are smaller.
    const first = (row) => row.flow === rows[0].flow;
    const name = (row) => (several ? `${row.scheme} · ${row.flow}` : row.scheme);
    const colour = (row) => visible(styleOf(s, row.scheme).colour, look);
    const point = (p) => [p.one_way_delay_p95_ms, p.throughput_mbps, p.p25_mbps, p.p75_mbps];
    const all = rows.flatMap((row) => row.points.map((p) => p.one_way_delay_p95_ms));
    const delays = rows.map((row) => row.point.one_way_delay_p95_ms);
    const middle = Math.sqrt(Math.min(...delays) * Math.max(...delays));
    // Names stand towards the middle, so that none leaves the figure.
    const side = (row) => (row.point.one_way_delay_p95_ms < middle ? "left" : "right");
    // A name that would cover an earlier one moves down until it does not.
    const placed = new Map();
    const apart = ({ seriesIndex, labelRect }) => {
      const { x, width, height } = labelRect;
      let { y } = labelRect;
      const others = [...placed].filter(([index]) => index < seriesIndex).map(([, other]) => other).sort((a, b) => a.y - b.y);
      for (const other of others) {
        const meets = x < other.x + other.width && other.x < x + width && y < other.y + other.height && other.y < y + height;
        if (meets) y = other.y + other.height;
      }
      placed.set(seriesIndex, { x, y, width, height });
      return { dy: y - labelRect.y };
    };
    const bars = {
      type: "custom", silent: true, z: 2,
      data: rows.map((row) => ({ value: point(row.point), itemStyle: { color: colour(row) } })),
      encode: { x: 0, y: [2, 3] },
      renderItem(params, api) {
        const [x, low] = api.coord([api.value(0), api.value(2)]);
        const [, high] = api.coord([api.value(0), api.value(3)]);
        return { type: "rect", shape: { x: x - 7, y: high, width: 14, height: Math.max(low - high, 1), r: 2 },
          style: { fill: rows[params.dataIndex] ? colour(rows[params.dataIndex]) : look.muted, opacity: 0.28 } };
      },
    };
    const markers = rows.map((row) => {
      const style = styleOf(s, row.scheme);
      return {
        name: name(row), type: "scatter", z: 4, symbol: style.marker, symbolSize: first(row) ? 16 : 10, data: [point(row.point)],
        itemStyle: style.variant
          ? { color: look.surface, borderColor: colour(row), borderWidth: 2.5 }
          : { color: colour(row), borderColor: look.surface, borderWidth: 1.5 },
        label: { show: first(row), formatter: row.scheme, position: side(row), distance: 12, fontSize: 15, fontFamily: look.font,
          color: look.text, textBorderColor: look.surface, textBorderWidth: 3 },
        labelLayout: apart,
      };
    });
    const seeds = rows.filter((row) => row.seeds > 1).map((row) => ({
      type: "scatter", silent: true, z: 3, symbol: styleOf(s, row.scheme).marker, symbolSize: 6,
      data: row.points.map(point), itemStyle: { color: colour(row), opacity: 0.55 },
    }));
    return {
      grid: { left: 64, right: 28, top: 34, bottom: 58 },
      tooltip: tooltipOf(look, {
        trigger: "item",
        formatter: ({ seriesName, value }) =>
          `<b>${seriesName}</b><br>${words(value[1])} Mbit/s (${words(value[2])} to ${words(value[3])})<br>` +
          `${words(value[0])} ms one-way delay, p95`,
      }),
      title: panelTitle(look, "Mbit/s", 4),
      xAxis: logAxis(look, all, { inverse: true, name: "95th percentile of one-way delay (ms)", nameGap: 34 }),
      yAxis: axisOf(look, { type: "value", min: 0, max: (range) => range.max * 1.12, axisLabel: { ...axisText(look), showMaxLabel: false } }),
      graphic: [{ type: "text", right: 36, top: 40, silent: true,
        style: { text: "better ↗", fontSize: 17, fontWeight: 600, fontFamily: look.font, fill: look.muted } }],
      series: [bars, ...seeds, ...markers],
    };
  },
  key(s, view, look) {
    const schemes = s.schemes.map((style) => [visible(style.colour, look), style.text, style.variant]);
    const flows = [...new Set(contestants(s).map((row) => row.flow))];
    return flows.length > 1 ? [...schemes, [null, `large: ${flows[0]}; smaller: ${flows.slice(1).join(", ")}`]] : schemes;
  },
  csv: (s) => [
    ["scheme", "flow", "seed", "one_way_delay_p95_ms", "throughput_mbps", "throughput_100ms_p25_mbps", "throughput_100ms_p75_mbps"],
    ...contestants(s).flatMap((row) => [...row.points, ...(row.point && row.seeds > 1 ? [row.point] : [])].map((p) =>
      [row.scheme, row.flow, p.seed ?? "mean", p.one_way_delay_p95_ms, p.throughput_mbps, p.p25_mbps, p.p75_mbps])),
  ],
});
