// Which users got the PRBs: PRB by PRB around the time of the greatest change, and over the whole run.

/// The cell in the direction of the first flow that is shown. Programs use both directions, so a reader chooses one.
function cellOf(s, view) {
  const flow = s.flows.find((_, index) => view.flows.has(index)) ?? s.flows[0];
  const direction = isEmulated ? view.direction : flow.direction;
  const cells = s.cells.filter((cell) => cell.direction === direction);
  return cells.find((cell) => cell.scheme === view.scheme) ?? cells[0] ?? s.cells[0];
}

/// Devices have colours. Background users are grey, so that the devices' PRBs stand out. Idle PRBs have no colour
/// (`null`).
function ownerShade(owner, cell) {
  if (owner === "idle") return null;
  if (owner === "control") return paletteOf(3);
  const device = cell.users.indexOf(owner);
  if (owner.startsWith("device") && device >= 0) return paletteOf([0, 1, 2, 5][device % 4]);
  return page.greys[Number(owner.split(" ")[1] ?? 0) % page.greys.length];
}
const ownerColour = (owner, cell, look) => {
  const shade = ownerShade(owner, cell);
  return shade ? shadeOf(shade, look) : look.surface;
};
const ownerSwatch = (owner, cell) => areaSwatch(ownerShade(owner, cell) ?? "var(--surface)");

/// The height of all carriers of a map, in pixels.
const mapHeight = ({ carriers }) => (onPaper() ? 190 : 250) * Math.min(3, carriers.length);

const ownerWords = (s, owner) => {
  if (isEmulated) return s.links.find((link) => owner === `device ${link.device}`)?.name.replace(/^(to|from) /, "") ?? owner;
  const flow = s.flows.find((known) => owner === `device ${known.device}`);
  return flow ? `${owner} (${flow.flow})` : owner;
};

/// Slots of a carrier in a subframe of 1 ms: one of LTE, one or more of NR.
const slotsOf = (carrier) => 2 ** (carrier.nr?.numerology ?? 0);

/// What the note of a figure says besides of a cell with carriers of NR.
const ofNr = (s, text) => (s.cells.some((cell) => cell.carriers.some((carrier) => carrier.nr)) ? text : "");

figure({
  id: "prb-share",
  title: "Who got the cell",
  note: `Part of all PRBs of all carriers in the direction ${isEmulated ? "that is chosen above" : "of the first flow shown"}, over the whole run.`,
  also: (s) => ofNr(s, "On a 5G carrier, all PRBs are those of the slots that can carry data in this direction. A special slot of TDD counts as a whole downlink slot."),
  over: "time",
  one: true,
  course: true,
  applies: (s) => s.cells.length > 0,
  height: () => heightOfPanel(380),
  option(s, view, look) {
    const cell = cellOf(s, view);
    return {
      grid: { left: 64, right: 24, top: 34, bottom: 58 },
      tooltip: tipOfTime(look, (time) => [cell.users.map((user, index) =>
        [ownerSwatch(user, cell), ownerWords(s, user), words(atTime(s, cell.share_percent[index], time))]), ["% of PRBs"]]),
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
  key: (s, view, look) => cellOf(s, view).users.map((user) => [ownerSwatch(user, cellOf(s, view)), ownerWords(s, user)]),
  csv: (s) => [
    ["scheme", "direction", "user", "time_s", "share_percent"],
    ...s.cells.flatMap((cell) => cell.users.flatMap((user, index) => cell.share_percent[index].map((share, at) =>
      [cell.scheme, cell.direction, user, Number((at * s.interval_s).toFixed(3)), share]))),
  ],
});

figure({
  id: "prb-map",
  title: "Who got which PRB",
  note: `Each subframe of the cell, in the direction ${isEmulated ? "that is chosen above" : "of the first flow shown"}, around the moment when most changed. What is left empty is idle.`,
  also: (s) => ofNr(s, "On a 5G carrier, each slot is drawn. Slots of the other direction are empty too."),
  wide: true,
  one: true,
  course: true,
  applies: (s) => s.cells.some((cell) => cell.map.grants.length > 0),
  height: (s, view) => 68 + mapHeight(cellOf(s, view)),
  option(s, view, look) {
    const cell = cellOf(s, view);
    const { map, carriers } = cell;
    const height = mapHeight(cell) / carriers.length - 24;
    const place = new Map(carriers.map((carrier, index) => [carrier.carrier, index]));
    const start = Math.round(map.start_ms);
    const isNr = carriers.some((carrier) => carrier.nr);
    return {
      grid: carriers.map((_, index) => ({ left: 64, right: 24, top: 34 + index * (height + 24), height })),
      title: panelTitle(look, carriers.length > 1 ? "PRB of each carrier" : "PRB", 4),
      tooltip: tipOfItem(look, ({ value: [ms, carrier, first, count, owner, mcs, again] }) => [ownerWords(s, map.owners[owner]), [
        [isNr ? "slot" : "subframe", `${start + ms} ms`], ...(carriers.length > 1 ? [["carrier", String(carrier)]] : []),
        ["PRBs", `${first} to ${first + count - 1}`], ...(mcs >= 0 ? [["MCS", String(mcs)]] : []), ...(again ? [["sent", "again"]] : [])]]),
      xAxis: carriers.map((_, index) => axisOf(look, {
        gridIndex: index, type: "value", min: 0, max: map.subframes, splitLine: { show: false }, splitNumber: look.width < 600 ? 3 : 8,
        axisLabel: index < carriers.length - 1 ? { show: false } : { ...axisText(look), formatter: (ms) => String(start + ms) },
        ...(index === carriers.length - 1 ? { name: isNr ? "slot (ms)" : "subframe (ms)", nameGap: 32 } : {}) })),
      yAxis: carriers.map((carrier, index) => axisOf(look, {
        gridIndex: index, type: "value", min: 0, max: carrier.prbs, interval: carrier.prbs / 2, splitLine: { show: false },
        axisLabel: { ...axisText(look), formatter: (prb) => String(Math.round(prb)) } })),
      series: carriers.map((carrier, index) => ({
        type: "custom", xAxisIndex: index, yAxisIndex: index, clip: true, progressive: 0,
        data: map.grants.filter((grant) => place.get(grant[1]) === index).map(([slot, ...grant]) => [slot / slotsOf(carrier), ...grant]),
        encode: { x: 0, y: 2 },
        renderItem(params, api) {
          const [left, bottom] = api.coord([api.value(0), api.value(2)]);
          const [right, top] = api.coord([api.value(0) + 1 / slotsOf(carrier), api.value(2) + api.value(3)]);
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
    return [...devices, "background", "control", "idle"].map((user) => [ownerSwatch(user, cell), user === "background" ? "background users" : ownerWords(s, user)]);
  },
  csv: (s) => [
    ["scheme", "direction", "time_ms", "carrier", "owner", "first_prb", "n_prb", "mcs", "retransmission"],
    ...s.cells.flatMap((cell) => cell.map.grants.map(([slot, carrier, first, count, owner, mcs, again]) =>
      [cell.scheme, cell.direction, cell.map.start_ms + slot / slotsOf(cell.carriers.find((known) => known.carrier === carrier) ?? {}), carrier, cell.map.owners[owner], first, count, mcs < 0 ? "" : mcs, again])),
  ],
});
