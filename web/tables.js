// Tables: all metrics, the expectations, and which scheme wins in which scenario.

/// A table of `headings` over rows of cells. If it is too wide, it scrolls sideways and its first column stays in view.
const table = (headings, body, attributes = {}) => el("div", { class: "scroll", tabindex: "0" },
  el("table", attributes, el("thead", {}, el("tr", {}, headings)), body));

/// A table that is sorted by a column when its heading is pressed. `columns`: [{ heading, unit, better }], `rows`:
/// [{ values, cells }].
function sortable(nameHeading, columns, rows) {
  const body = el("tbody");
  const fill = () => body.replaceChildren(...rows.map((row) => el("tr", {}, row.cells)));
  const headings = columns.map((column, index) => el("th", { role: "button", tabindex: "0", scope: "col",
    click: () => sort(index), keydown: (event) => event.key === "Enter" && sort(index) }, column.heading, el("small", {}, column.unit)));
  function sort(index) {
    const now = headings[index].getAttribute("aria-sort");
    const first = columns[index].better === "less" ? "ascending" : "descending";
    const next = now === null ? first : now === "ascending" ? "descending" : "ascending";
    headings.forEach((heading) => heading.removeAttribute("aria-sort"));
    headings[index].setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    rows.sort((a, b) => sign * ((a.values[index] ?? Infinity * sign) - (b.values[index] ?? Infinity * sign)) || 0);
    fill();
  }
  fill();
  return table([el("th", { class: "name", scope: "col" }, nameHeading), headings].flat(), body);
}

function metricsCard(s) {
  // The best text of each column, among the first flows.
  const best = s.columns.map((column, index) => {
    if (!column.better) return null;
    const cells = s.rows.filter((row) => row.flow === s.flows[0].flow).map((row) => row.cells[index]).filter((cell) => cell.mean !== null);
    if (cells.length < 2) return null;
    return cells.reduce((one, other) => ((column.better === "more" ? other.mean > one.mean : other.mean < one.mean) ? other : one)).text;
  });
  const several = s.flows.length > 1;
  const rows = s.rows.map((row) => {
    const cells = row.cells.map((cell, index) => {
      const wins = cell.mean !== null && cell.text === best[index] && row.flow === s.flows[0].flow;
      return el("td", wins ? { class: "best" } : {}, cell.text, cell.deviation_text === null ? null : el("small", {}, ` ±${cell.deviation_text}`));
    });
    const flow = [several ? row.flow : null, row.own_scheme].filter((name) => name !== null).join(", ");
    const name = el("th", { scope: "row" }, el("span", { class: "scheme" }, schemeSwatch(styleOf(s, row.scheme)), el("span", {}, row.scheme)), flow ? el("small", {}, flow) : null);
    return { values: row.cells.map((cell) => cell.mean), cells: [name, cells].flat() };
  });
  const seeds = Math.max(...s.rows.map((row) => row.seeds));
  const varies = s.rows.some((row) => row.cells.some((cell) => cell.deviation_text !== null));
  const means = !varies ? `The ${seeds} seeds change nothing here: no digit differs. ` : `Means over ${seeds} seeds, ± their standard deviation ` +
    "(none where no digit differs). ";
  return el("article", { class: "card wide", id: `${s.name}.table` }, el("h3", {}, "All numbers"),
    el("p", { class: "muted" }, (seeds > 1 ? means : "") +
      "Press a heading to sort. Delays are those of delivered packets; loss counts packets that were dropped or lost on the way."),
    sortable(several ? "scheme, flow" : "scheme", s.columns, rows),
    el("div", { class: "foot" }, commandLine(s.command, el("button", { type: "button", click: () => saveCsv(`${s.name}-table.csv`, [
      ["scheme", "flow", "seeds", ...s.columns.flatMap((column) => [column.path, `${column.path} deviation`])],
      ...s.rows.map((row) => [row.scheme, row.flow, row.seeds, ...row.cells.flatMap((cell) => [cell.mean, cell.deviation])]),
    ]) }, "CSV"))));
}

function transfersCard(s) {
  if (!s.transfers) return null;
  const heading = (name) => el("th", { scope: "col" }, name, el("small", {}, "s"));
  const headings = [el("th", { class: "name", scope: "col" }, "scheme, flow"), el("th", { scope: "col" }, "arrived"), ...s.transfers.headings.map(heading)];
  const rows = s.transfers.rows.map((row) => el("tr", {},
    el("th", { scope: "row" }, el("span", { class: "scheme" }, schemeSwatch(styleOf(s, row.scheme)), el("span", {}, row.scheme)),
      el("small", {}, [row.flow, row.own_scheme].filter((name) => name !== null).join(", "))),
    el("td", {}, row.complete), row.texts.map((text) => el("td", {}, text))));
  return el("article", { class: "card wide", id: `${s.name}.transfers` }, el("h3", {}, "Transfers"),
    el("p", { class: "muted" }, "Seconds from the beginning of a transfer until its last byte arrived; start-up: until the client could show something. " +
      "All seeds are one sample; percentiles are over the transfers that arrived; the others were under way at the end, or waited for those before them."),
    table(headings, el("tbody", {}, rows)),
    el("div", { class: "foot" }, commandLine(s.command, el("button", { type: "button", click: () => saveCsv(`${s.name}-transfers.csv`, [
      ["scheme", "flow", "arrived", ...s.transfers.headings.map((name) => `${name} s`)],
      ...s.transfers.rows.map((row) => [row.scheme, row.flow, row.complete, ...row.values]),
    ]) }, "CSV"))));
}

function videosCard(s) {
  if (!s.videos) return null;
  const headings = [el("th", { class: "name", scope: "col" }, "scheme, flow"), ...s.videos.headings.map((name) => el("th", { scope: "col" }, name))];
  const rows = s.videos.rows.map((row) => el("tr", {},
    el("th", { scope: "row" }, el("span", { class: "scheme" }, schemeSwatch(styleOf(s, row.scheme)), el("span", {}, row.scheme)),
      el("small", {}, [row.flow, row.own_scheme].filter((name) => name !== null).join(", "))),
    row.texts.map((text) => el("td", {}, text))));
  return el("article", { class: "card wide", id: `${s.name}.videos` }, el("h3", {}, "Adaptive video"),
    el("p", { class: "muted" }, "Means over the seeds. Bitrate: that of the representations, in Mbit/s; sent at: the server's throughput while it sends, " +
      "in Mbit/s; score: quality of experience from 1 (bad) to 5 (excellent)."),
    table(headings, el("tbody", {}, rows)),
    el("div", { class: "foot" }, commandLine(s.command, el("button", { type: "button", click: () => saveCsv(`${s.name}-videos.csv`, [
      ["scheme", "flow", ...s.videos.headings],
      ...s.videos.rows.map((row) => [row.scheme, row.flow, ...row.texts]),
    ]) }, "CSV"))));
}

function expectationsCard(s) {
  if (s.expectations.length === 0) return null;
  const met = s.expectations.filter((verdict) => verdict.passed).length;
  const heading = (name) => el("th", { class: "name", scope: "col" }, name);
  return el("article", { class: "card wide", id: `${s.name}.expectations` }, el("h3", {}, `Expectations: ${met} of ${s.expectations.length} met`),
    el("table", { class: "expectations" },
      el("thead", {}, el("tr", {}, ["", "what is expected", "measured", "wanted"].map(heading))),
      el("tbody", {}, s.expectations.map((verdict) => el("tr", {},
        el("td", { class: `text ${verdict.passed ? "met" : "missed"}` }, verdict.passed ? "✓ met" : "✗ missed"),
        el("td", { class: "text wrap" }, verdict.say,
          el("small", {}, `${verdict.scheme}, ${verdict.flow}: `, el("code", {}, verdict.metric))),
        el("td", { class: "text" }, verdict.measured_text), el("td", { class: "text wrap" }, verdict.wanted))))));
}

function overviewSection(overview) {
  const headings = [el("th", { class: "name", scope: "col" }, "scenario"),
    el("th", { scope: "col" }, "expectations"),
    ...overview.schemes.map((scheme) => el("th", { scope: "col" }, scheme, el("small", {}, "Mbit/s, ms")))];
  const rows = overview.rows.map((row) => el("tr", {},
    el("th", { scope: "row" }, el("a", { href: `#${row.scenario}` }, row.scenario)),
    el("td", { class: row.expectations === 0 ? "" : row.expectations_met === row.expectations ? "met" : "missed" },
      row.expectations === 0 ? "–" : `${row.expectations_met} of ${row.expectations}`),
    row.cells.map((cell) => el("td", {}, cell ? [cell.throughput, el("small", {}, `${cell.one_way_delay_p95} ms`)] : "–"))));
  return el("section", { id: "overview" }, el("h2", {}, "Overview"),
    el("p", { class: "muted" }, "First flow of each scenario, mean over seeds: throughput, and the 95th percentile of one-way delay."),
    el("div", { class: "cards" }, el("article", { class: "card wide" }, table(headings, el("tbody", {}, rows), { class: "overview" }))));
}
