// Pantheon's figure: up and to the right is better.
// Only flows that take all that they can get are compared. A competitor with a rate of its own is left out.
const contestants = (s) => s.rows.filter((row) => row.point && s.flows.find((flow) => flow.flow === row.flow)?.greedy);

figure({
  id: "throughput-delay",
  title: "Throughput against delay",
  note: "Up and to the right is better. Marker: mean over seeds of throughput and of the 95th percentile of one-way delay. " +
    "Bar: from the 25th to the 75th percentile of the throughput per 100 ms. Small points: single seeds.",
  wide: true,
  applies: (s) => contestants(s).length > 0,
  height: (s, view, look) => (onPaper() ? 360 : look.width < 600 ? 420 : 480),
  option(s, view, look) {
    const rows = contestants(s);
    const several = new Set(rows.map((row) => row.flow)).size > 1;
    // Of several flows, only the first is named. The others are drawn smaller.
    const first = (row) => row.flow === rows[0].flow;
    const name = (row) => (several ? `${row.scheme} · ${row.flow}` : row.scheme);
    const colour = (row) => shadeOf(styleOf(s, row.scheme).colour, look);
    const point = (p) => [p.one_way_delay_p95_ms, p.throughput_mbps, p.p25_mbps, p.p75_mbps];
    const all = rows.flatMap((row) => row.points.map((p) => p.one_way_delay_p95_ms));
    const radius = (row) => (first(row) ? 8 : 5);
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
        name: name(row), type: "scatter", z: 4, symbol: markerOf(style.marker), symbolSize: 2 * radius(row), data: [point(row.point)],
        itemStyle: style.variant
          ? { color: look.surface, borderColor: colour(row), borderWidth: 2.5 }
          : { color: colour(row), borderColor: look.surface, borderWidth: 1.5 },
      };
    });
    const seeds = rows.filter((row) => row.seeds > 1).map((row) => ({
      type: "scatter", silent: true, z: 3, symbol: markerOf(styleOf(s, row.scheme).marker), symbolSize: 6,
      data: row.points.map(point), itemStyle: { color: colour(row), opacity: 0.55 },
    }));
    let boxes = [];
    // The names of the first flow's points, placed so that none covers another.
    const names = {
      type: "custom", silent: true, z: 5, data: rows.map((row) => point(row.point)), encode: { x: 0, y: 1 },
      renderItem(params, api) {
        if (params.dataIndex === 0) {
          const points = rows.map((row) => {
            const [x, y] = api.coord([row.point.one_way_delay_p95_ms, row.point.throughput_mbps]);
            const { width, height } = echarts.format.getTextRect(first(row) ? row.scheme : "", `15px ${look.font}`);
            return { x, y, radius: radius(row) + 2, width: first(row) ? width + 4 : 0, height: first(row) ? height + 4 : 0 };
          });
          const area = params.coordSys;
          boxes = placeNames(points, area, [{ x: area.x + area.width - 96, y: area.y, width: 96, height: 34 }]);
        }
        const row = rows[params.dataIndex];
        const box = boxes[params.dataIndex];
        if (!first(row) || !box) return;
        const [x, y] = api.coord([row.point.one_way_delay_p95_ms, row.point.throughput_mbps]);
        const end = nearest(box, { x, y });
        return { type: "group", children: [
          ...(box.leads ? [{ type: "line", shape: { x1: x, y1: y, x2: end.x, y2: end.y }, style: { stroke: colour(row), lineWidth: 1, opacity: 0.7 }, z2: 0 }] : []),
          { type: "text", x: box.x + 2, y: box.y + 2, z2: 1, style: { text: row.scheme, fill: look.text, font: `15px ${look.font}`, stroke: look.surface, lineWidth: 3 } },
        ] };
      },
    };
    return {
      grid: { left: 64, right: 28, top: 34, bottom: 58 },
      tooltip: tipOfItem(look, ({ seriesIndex }) => {
        const row = rows[seriesIndex - 1 - seeds.length];
        const text = (path) => row.cells[s.columns.findIndex((column) => column.path === path)].text;
        return [name(row), [["throughput", `${text("throughput_mbps")} Mbit/s`],
          ["per 100 ms, p25 to p75", `${text("throughput_100ms.p25")} to ${text("throughput_100ms.p75")} Mbit/s`],
          ["one-way delay p95", `${text("one_way_delay_ms.p95")} ms`]]];
      }),
      title: panelTitle(look, "Mbit/s", 4),
      xAxis: logAxis(look, all, { inverse: true, name: "95th percentile of one-way delay (ms)", nameGap: 34 }),
      yAxis: axisOf(look, { type: "value", min: 0, max: (range) => range.max * 1.12, axisLabel: { ...axisText(look), showMaxLabel: false } }),
      graphic: [{ type: "text", right: 36, top: 40, silent: true,
        style: { text: "better ↗", fontSize: 17, fontWeight: 600, fontFamily: look.font, fill: look.muted } }],
      series: [bars, ...seeds, ...markers, names],
    };
  },
  key(s) {
    const schemes = s.schemes.map((style) => [schemeSwatch(style), style.text]);
    const flows = [...new Set(contestants(s).map((row) => row.flow))];
    return flows.length > 1 ? [...schemes, [null, `large: ${flows[0]}; smaller: ${flows.slice(1).join(", ")}`]] : schemes;
  },
  csv: (s) => [
    ["scheme", "flow", "seed", "one_way_delay_p95_ms", "throughput_mbps", "throughput_100ms_p25_mbps", "throughput_100ms_p75_mbps"],
    ...contestants(s).flatMap((row) => [...row.points, ...(row.point && row.seeds > 1 ? [row.point] : [])].map((p) =>
      [row.scheme, row.flow, p.seed ?? "mean", p.one_way_delay_p95_ms, p.throughput_mbps, p.p25_mbps, p.p75_mbps])),
  ],
});
