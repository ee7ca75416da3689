// Who got the cell: PRB by PRB in the moment when most changed, and over the whole run.

/// The cell in the direction of the first flow that is shown.
function cellOf(s, view) {
  const flow = s.flows.find((_, index) => view.flows.has(index)) ?? s.flows[0];
  const cells = s.cells.filter((cell) => cell.direction === flow.direction);
  return cells.find((cell) => cell.scheme === view.scheme) ?? cells[0] ?? s.cells[0];
}

/// Devices have colours; background users are greys, so that one's own PRBs stand out; idle is paper.
function ownerColour(owner, cell, look) {
  if (owner === "idle") return look.surface;
  if (owner === "control") return "#CC79A7";
  const device = cell.users.indexOf(owner);
  if (owner.startsWith("device") && device >= 0) return [PALETTE[0], PALETTE[1], PALETTE[2], PALETTE[5]][device % 4];
  if (owner === "background") return look.dark ? "#8b949e" : "#7d8590";
  const greys = look.dark ? ["#6e7681", "#8b949e", "#b1bac4", "#57606a"] : ["#8c959f", "#6e7781", "#afb8c1", "#57606a"];
  return greys[Number(owner.split(" ")[1] ?? 0) % greys.length];
}

const ownerWords = (s, owner) => {
  const flow = s.flows.find((known) => owner === `device ${known.device}`);
  return flow ? `${owner} (${flow.flow})` : owner;
};

figure({
  id: "prb-share",
  title: "Who got the cell",
  note: "Part of all PRBs of all carriers in the direction of the first flow shown, over the whole run.",
  over: "time",
  one: true,
  course: true,
  applies: (s) => s.cells.length > 0,
  height: () => 380,
  option(s, view, look) {
    const cell = cellOf(s, view);
    return {
      grid: { left: 64, right: 24, top: 34, bottom: 58 },
      tooltip: tooltipOf(look, { trigger: "axis", valueFormatter: (value) => `${words(value)} %` }),
      title: panelTitle(look, "% of PRBs", 4),
      xAxis: timeAxis(s, look, { name: "s", nameGap: 30 }),
      yAxis: axisOf(look, { type: "value", min: 0, max: 100 }),
      dataZoom: zoomOf(look, [0]),
      series: cell.users.map((user, index) => ({
        name: ownerWords(s, user), type: "line", stack: "prbs", data: overTime(s, cell.share_percent[index]), showSymbol: false,
        lineStyle: { width: 0 }, areaStyle: { color: ownerColour(user, cell, look), opacity: user === "idle" ? 0 : 0.9 },
        itemStyle: { color: ownerColour(user, cell, look), borderColor: look.muted, borderWidth: user === "idle" ? 1 : 0 }, emphasis: { disabled: true },
      })),
    };
  },
  key: (s, view, look) => cellOf(s, view).users.map((user) => [ownerColour(user, cellOf(s, view), look), ownerWords(s, user)]),
  csv: (s) => [
    ["scheme", "direction", "user", "time_s", "share_percent"],
    ...s.cells.flatMap((cell) => cell.users.flatMap((user, index) => cell.share_percent[index].map((share, at) =>
      [cell.scheme, cell.direction, user, Number((at * s.interval_s).toFixed(3)), share]))),
  ],
});

figure({
  id: "prb-map",
  title: "Who got which PRB",
  note: "Each subframe of the cell, in the direction of the first flow shown, around the moment when most changed. White is idle.",
  wide: true,
  one: true,
  course: true,
  applies: (s) => s.cells.some((cell) => cell.map.grants.length > 0),
  height: (s, view) => 68 + Math.min(3, cellOf(s, view).carriers.length) * 250,
  option(s, view, look) {
    const cell = cellOf(s, view);
    const { map, carriers } = cell;
    const height = 250 * Math.min(3, carriers.length) / carriers.length - 24;
    const place = new Map(carriers.map((carrier, index) => [carrier.carrier, index]));
    const start = Math.round(map.start_ms);
    return {
      grid: carriers.map((_, index) => ({ left: 64, right: 24, top: 34 + index * (height + 24), height })),
      title: panelTitle(look, carriers.length > 1 ? "PRB of each carrier" : "PRB", 4),
      tooltip: tooltipOf(look, { trigger: "item", formatter: ({ value }) =>
        `<b>${ownerWords(s, map.owners[value[4]])}</b><br>subframe ${start + value[0]}, ${value[3]} PRBs from ${value[2]}` +
        (value[5] >= 0 ? `<br>MCS ${value[5]}` : "") + (value[6] ? ", sent again" : "") }),
      xAxis: carriers.map((_, index) => axisOf(look, {
        gridIndex: index, type: "value", min: 0, max: map.subframes, splitLine: { show: false }, splitNumber: innerWidth < 600 ? 3 : 8,
        axisLabel: index < carriers.length - 1 ? { show: false } : { ...axisText(look), formatter: (ms) => String(start + ms) },
        ...(index === carriers.length - 1 ? { name: "subframe (ms)", nameGap: 32 } : {}) })),
      yAxis: carriers.map((carrier, index) => axisOf(look, {
        gridIndex: index, type: "value", min: 0, max: carrier.prbs, interval: carrier.prbs / 2, splitLine: { show: false },
        axisLabel: { ...axisText(look), formatter: (prb) => String(Math.round(prb)) } })),
      series: carriers.map((carrier, index) => ({
        type: "custom", xAxisIndex: index, yAxisIndex: index, clip: true, progressive: 0,
        data: map.grants.filter((grant) => place.get(grant[1]) === index),
        encode: { x: 0, y: 2 },
        renderItem(params, api) {
          const [left, bottom] = api.coord([api.value(0), api.value(2)]);
          const [right, top] = api.coord([api.value(0) + 1, api.value(2) + api.value(3)]);
          const again = api.value(6) === 1;
          return { type: "rect", shape: { x: left, y: top, width: Math.max(right - left - (right - left > 3 ? 0.5 : 0), 0.5), height: bottom - top },
            style: { fill: ownerColour(map.owners[api.value(4)], cell, look), opacity: again ? 0.55 : 1 } };
        },
      })),
    };
  },
  key: (s, view, look) => {
    const cell = cellOf(s, view);
    const devices = cell.users.filter((user) => user.startsWith("device"));
    return [...devices, "background", "control"].map((user) => [ownerColour(user, cell, look), user === "background" ? "background users" : ownerWords(s, user)])
      .concat([[look.surface, "idle"]]);
  },
  csv: (s) => [
    ["scheme", "direction", "time_ms", "carrier", "owner", "first_prb", "n_prb", "mcs", "retransmission"],
    ...s.cells.flatMap((cell) => cell.map.grants.map(([subframe, carrier, first, count, owner, mcs, again]) =>
      [cell.scheme, cell.direction, cell.map.start_ms + subframe, carrier, cell.map.owners[owner], first, count, mcs < 0 ? "" : mcs, again])),
  ],
});
