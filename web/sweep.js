// The page of a sweep: maps of a metric over two keys, one for each scheme. Every number comes with the page; a map only
// colours it.

/// Dark to light, also for colour-blind readers and on grey paper. Source: viridis, van der Walt and Smith 2015.
const RAMP = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"]
  .map((colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));

/// The colour at a share of the ramp, from 0 to 1.
function rampAt(share) {
  const place = share * (RAMP.length - 1);
  const low = Math.min(Math.floor(place), RAMP.length - 2);
  return RAMP[low].map((part, channel) => Math.round(part + (RAMP[low + 1][channel] - part) * (place - low)));
}
const css = (rgb) => `rgb(${rgb.join(" ")})`;
/// Black or white, whichever is easier to read on a colour. Source: WCAG 2.1, relative luminance.
function inkOn(rgb) {
  const [r, g, b] = rgb.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

/// From so many columns on, cells are small and their numbers show when they are pointed at.
const MAX_NUMBERS = 12;
/// Values that span more than this factor are coloured by their logarithm.
const LOG_FROM = 30;

const swept = page.axes.map((axis, index) => ({ ...axis, index })).filter((axis) => axis.values.length > 1);
/// What a map can have across and down: a key, or the schemes.
const SCHEMES = { key: "scheme", values: page.schemes.map((style) => style.text), index: -1 };
const NOTHING = { key: "", values: [""], index: -2 };
const view = {
  metric: 0,
  flow: 0,
  across: swept[0] ?? NOTHING,
  down: swept[1] ?? SCHEMES,
  /// For each axis, the index of the value that holds where the axis is not on the map.
  fixed: page.axes.map(() => 0),
};

/// The place of a number in the lists of the page.
function placeOf(scheme, places) {
  const point = page.axes.reduce((point, axis, index) => point * axis.values.length + places[index], 0);
  const points = page.axes.reduce((count, axis) => count * axis.values.length, 1);
  return (scheme * points + point) * page.flows.length + view.flow;
}

/// What a map shows at a column and a row: mean, text, failed seeds, and what it stands for.
function cellOf(scheme, column, row) {
  const places = [...view.fixed];
  for (const [axis, at] of [[view.across, column], [view.down, row]]) {
    if (axis.index >= 0) places[axis.index] = at;
  }
  const which = view.down.index === -1 ? row : scheme;
  const at = placeOf(which, places);
  return { scheme: page.schemes[which].text, places, mean: page.means[view.metric][at] ?? null, text: page.texts[view.metric][at] ?? "–", failed: page.failed_seeds[at] };
}

const numbersShown = () => {
  const maps = view.down.index === -1 ? 1 : page.schemes.length;
  const shown = [];
  for (let scheme = 0; scheme < maps; scheme++) {
    for (let row = 0; row < view.down.values.length; row++) {
      for (let column = 0; column < view.across.values.length; column++) shown.push(cellOf(scheme, column, row));
    }
  }
  return shown;
};

/// How a number becomes a share of the ramp, over all maps together.
function scaleOf(cells) {
  const means = cells.map((cell) => cell.mean).filter((mean) => mean !== null);
  if (!means.length) return null;
  const least = cells.find((cell) => cell.mean === Math.min(...means));
  const most = cells.find((cell) => cell.mean === Math.max(...means));
  const isLog = least.mean > 0 && most.mean / least.mean > LOG_FROM;
  const to = (mean) => (isLog ? Math.log(mean) : mean);
  const span = to(most.mean) - to(least.mean);
  return { least, most, isLog, share: (mean) => (span > 0 ? (to(mean) - to(least.mean)) / span : 0.5) };
}

const setText = (places) => page.axes.map((axis, index) => `${axis.key}=${axis.values[places[index]]}`).join(", ");

function mapTable(scheme, scale) {
  const hasNumbers = view.across.values.length <= MAX_NUMBERS;
  const metric = page.metrics[view.metric];
  const body = view.down.values.map((value, row) => el("tr", {},
    el("th", { scope: "row" }, view.down.index === -1 ? [schemeSwatch(page.schemes[row]), value] : value),
    view.across.values.map((_, column) => {
      const cell = cellOf(scheme, column, row);
      const failed = cell.failed ? `, ${cell.failed} of ${page.seeds} seeds failed` : "";
      const title = `${cell.scheme}${page.axes.length ? `, ${setText(cell.places)}` : ""}: ${cell.mean === null ? "nothing was measured" : `${cell.text} ${metric.unit}`}${failed}`;
      const mark = cell.failed ? "✗" : "";
      if (cell.mean === null) return el("td", { class: "none", title }, hasNumbers ? (cell.failed ? "✗" : "–") : "");
      const colour = rampAt(scale.share(cell.mean));
      return el("td", { title, style: `background:${css(colour)};color:${inkOn(colour)}` }, hasNumbers ? `${cell.text}${mark}` : mark);
    })));
  return el("div", { class: "scroll", tabindex: "0" }, el("table", { class: hasNumbers ? "heat" : "heat small" },
    view.across === NOTHING ? null : el("thead", {},
      el("tr", {}, el("th", { class: "corner" }, view.down.key), el("th", { class: "over", colspan: view.across.values.length }, view.across.key)),
      el("tr", {}, el("th", {}), view.across.values.map((value, column) => el("th", { scope: "col" }, hasNumbers || column === 0 || column === view.across.values.length - 1 ? value : "")))),
    el("tbody", {}, body)));
}

/// A choice of one of several names.
function choice(label, names, chosen, take) {
  const select = el("select", { "aria-label": label, change: (event) => { take(Number(event.currentTarget.value)); fill(); } },
    names.map((name, index) => el("option", { value: index, selected: index === chosen ? "" : false }, name)));
  return el("label", { class: "chips" }, el("span", {}, label), select);
}

const metricName = (metric) => `${metric.heading}, ${metric.unit}`;
const better = { more: "more is better", less: "less is better" };

function controls() {
  const axes = [...swept, SCHEMES];
  const take = (side, other) => (index) => {
    if (axes[index] === view[other]) view[other] = view[side];
    view[side] = axes[index];
    if (view.across === SCHEMES) [view.across, view.down] = [view.down, view.across];
  };
  const off = swept.filter((axis) => axis.index !== view.across.index && axis.index !== view.down.index);
  return el("div", { class: "controls" },
    choice("metric", page.metrics.map(metricName), view.metric, (index) => (view.metric = index)),
    page.flows.length > 1 ? choice("flow", page.flows, view.flow, (index) => (view.flow = index)) : null,
    swept.length > 1 ? choice("across", swept.map((axis) => axis.key), swept.indexOf(view.across), take("across", "down")) : null,
    swept.length > 1 ? choice("down", axes.map((axis) => axis.key), axes.indexOf(view.down), take("down", "across")) : null,
    off.map((axis) => choice(axis.key, axis.values, view.fixed[axis.index], (index) => (view.fixed[axis.index] = index))));
}

function legend(scale) {
  const metric = page.metrics[view.metric];
  if (!scale) return el("p", { class: "muted" }, "Nothing was measured here.");
  const steps = RAMP.map((colour) => css(colour)).join(",");
  return el("div", { class: "ramp" }, el("span", {}, scale.least.text), el("span", { class: "bar", style: `background:linear-gradient(to right,${steps})` }), el("span", {}, scale.most.text),
    el("span", { class: "muted" }, [metricName(metric), better[metric.better], scale.isLog ? "logarithmic colours" : null].filter(Boolean).join(" · ")));
}

const maps = el("div", { class: "maps" });
function fill() {
  const scale = scaleOf(numbersShown());
  const seeds = page.seeds > 1 ? `Means over ${page.seeds} seeds. ` : "";
  const fixed = page.axes.filter((axis, index) => axis.values.length && index !== view.across.index && index !== view.down.index)
    .map((axis) => `${axis.key}=${axis.values[view.fixed[page.axes.indexOf(axis)]]}`);
  const head = el("p", { class: "muted" }, seeds + (fixed.length ? `On these maps: ${fixed.join(", ")}. ` : "") + "✗ marks what failed.");
  const card = (scheme) => el("article", { class: view.across.values.length > MAX_NUMBERS / 2 ? "card wide" : "card" },
    el("h3", {}, el("span", { class: "scheme" }, schemeSwatch(page.schemes[scheme]), el("span", {}, page.schemes[scheme].text))), mapTable(scheme, scale));
  const all = view.down.index === -1 ? [el("article", { class: "card wide" }, mapTable(0, scale))] : page.schemes.map((_, scheme) => card(scheme));
  maps.replaceChildren(controls(), legend(scale), head, el("div", { class: "cards" }, all));
}

/// Every number of the page as rows.
function csvRows() {
  const rows = [["scheme", ...page.axes.map((axis) => axis.key), "flow", "failed seeds", ...page.metrics.map((metric) => metric.path)]];
  const points = page.axes.reduce((count, axis) => count * axis.values.length, 1);
  page.failed_seeds.forEach((failed, at) => {
    let rest = Math.floor(at / page.flows.length) % points;
    const values = page.axes.map((axis) => axis.values.length).reverse().map((count) => {
      const place = rest % count;
      rest = Math.floor(rest / count);
      return place;
    }).reverse();
    const scheme = page.schemes[Math.floor(at / page.flows.length / points)].text;
    if (failed !== null) rows.push([scheme, ...values.map((place, index) => page.axes[index].values[place]), page.flows[at % page.flows.length], failed, ...page.means.map((means) => means[at])]);
  });
  return rows;
}

function failuresCard() {
  if (!page.failed) return null;
  const rows = page.failures.map((failure) => el("tr", {}, el("td", { class: "text wrap" }, failure.scheme, el("small", {}, `seed ${failure.seed}`)),
    el("td", { class: "text wrap" }, failure.reason, el("small", {}, el("code", {}, failure.set)))));
  const more = page.failed > page.failures.length ? ` The first ${page.failures.length} of them; all are in ` : " They are in ";
  return el("article", { class: "card wide" }, el("h3", {}, `${page.failed} ${page.failed === 1 ? "run" : "runs"} failed`),
    el("p", { class: "muted" }, `They have no rows in the results.${more}`, el("a", { href: "failures.json" }, "failures.json"), "."),
    el("table", { class: "plain" }, el("tbody", {}, rows)));
}

function build() {
  document.title = `${page.scenario} · Airpace sweep`;
  const fact = (...words) => el("li", {}, ...words);
  const counted = (count, of) => [el("b", {}, count.toLocaleString("en")), ` ${of}${count === 1 ? "" : "s"}`];
  const all = page.axes.filter((axis) => axis.count > 1);
  const rows = all.map((axis) => el("tr", {}, el("th", { scope: "row" }, el("code", {}, axis.key)), el("td", {}, `${axis.count} values`)));
  const drawn = page.axes.every((axis) => axis.values.length > 0) && page.flows.length > 0;
  const parts = [
    el("header", {}, el("h1", {}, page.scenario), el("p", { class: "muted" }, [page.about, page.source].filter(Boolean).join(". ")),
      el("ul", { class: "facts" }, fact(...counted(page.points, "point")), fact(...counted(page.schemes.length, "scheme")), fact(...counted(page.seeds, "seed")),
        fact(...counted(page.cells, "run")), page.failed ? fact(el("span", { class: "missed" }, `${page.failed.toLocaleString("en")} failed`)) : null,
        fact("version ", el("b", {}, page.version)), fact("host and time: ", el("a", { href: "manifest.json" }, "manifest.json"))),
      el("div", { class: "foot" }, commandLine(page.command, el("button", { type: "button", click: () => saveCsv(`${page.scenario}-sweep.csv`, csvRows()) }, "CSV")))),
    el("main", {}, el("section", {}, el("h2", {}, "Maps"),
      page.sentences.map((sentence) => el("p", {}, sentence)),
      page.is_cut && drawn ? el("p", { class: "notice mild" }, "The sweep has more points than a page can hold. These are the ones at the first value of all keys but two; the rest is in results/.") : null,
      drawn ? maps : el("p", { class: "notice mild" }, page.flows.length ? "Two keys of this sweep have more values than a map can show. The numbers are in results/." : "No run came to its end."),
      drawn || !rows.length ? null : el("table", { class: "plain" }, el("tbody", {}, rows)),
      el("div", { class: "cards" }, [failuresCard()].filter(Boolean)))),
    el("footer", {}, "Same matrix, same bytes: results depend on scenario, keys, schemes and seeds only. All numbers lie beside this page as one Parquet dataset, ",
      el("code", {}, "results/"), "."),
  ];
  document.getElementById("page").append(...parts.filter(Boolean));
  if (drawn) fill();
}

build();
