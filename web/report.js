// The page: builds its sections from the embedded data, draws figures when they come into view, and zooms all figures
// over time together.
"use strict";

// ---- figures --------------------------------------------------------------------------------------------------

const charts = [];
const drawAll = () => charts.forEach((box) => box.draw());
const whenSeen = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => { whenSeen.unobserve(entry.target); entry.target.draw(); }),
  { rootMargin: "600px" });

function figureCard(s, view, spec) {
  const box = el("div", { class: "chart", role: "img", "aria-label": `${spec.title}: ${s.name}` });
  const key = el("div", { class: "key" });
  const card = el("article", { class: spec.wide ? "card wide" : "card", id: `${s.name}.${spec.id}` },
    el("h3", {}, spec.one && s.schemes.length > 1 ? el("span", {}, `${spec.title}, under `, el("span", { class: "under" })) : spec.title),
    el("p", { class: "muted" }, [spec.note, spec.also?.(s)].filter(Boolean).join(" ")), box, key,
    el("div", { class: "foot" },
      commandLine(spec.course ? s.command_of_course : s.command,
        el("button", { type: "button", click: () => saveCsv(`${s.name}-${spec.id}.csv`, spec.csv(s)) }, "CSV"),
        el("button", { type: "button", click: () => chart && saveText(`${s.name}-${spec.id}.svg`, box.svg(), "image/svg+xml") }, "SVG"),
        el("button", { type: "button", click: () => chart && save(`${s.name}-${spec.id}.png`, chart.getDataURL({ pixelRatio: 2, backgroundColor: lookOf().surface })) }, "PNG"))));
  let chart = null;
  const optionOf = (look) => ({ animation: false, backgroundColor: "transparent", aria: { enabled: true }, ...spec.option(s, view, look) });
  const draw = () => {
    const look = lookOf();
    const under = card.querySelector(".under");
    if (under) under.textContent = view.scheme;
    box.style.height = `${spec.height(s, view, look)}px`;
    if (!chart) {
      // Fine enough for paper on any screen.
      chart = echarts.init(box, null, { renderer: "canvas", devicePixelRatio: Math.max(devicePixelRatio, 2) });
      if (spec.over === "time") zoomTogether(chart, view);
    }
    chart.resize();
    chart.setOption(optionOf(look), { notMerge: true });
    if (spec.over === "time" && view.zoom) chart.dispatchAction({ type: "dataZoom", ...view.zoom });
    const entries = spec.key ? spec.key(s, view, look) : [];
    key.replaceChildren(...entries.map(([swatch, name]) => el("span", {}, swatch, nameNode(name))));
  };
  box.draw = draw;
  box.svg = () => svgOf(optionOf(lookOfSvg()), chart.getWidth(), chart.getHeight(), view.zoom);
  box.redraw = () => chart && draw();
  charts.push(box);
  box.style.height = `${spec.height(s, view, lookOf())}px`;
  view.redraws.push(box.redraw);
  whenSeen.observe(box);
  return card;
}

/// All figures over time of a scenario have the same zoom.
function zoomTogether(chart, view) {
  view.timeCharts.push(chart);
  chart.on("datazoom", (event) => {
    if (view.zooming) return;
    view.zooming = true;
    const { start, end } = event.batch?.[0] ?? event;
    view.zoom = { start, end };
    view.timeCharts.filter((other) => other !== chart).forEach((other) => other.dispatchAction({ type: "dataZoom", start, end }));
    view.zooming = false;
  });
}

// ---- controls -------------------------------------------------------------------------------------------------

function chips(label, items, chosen, changed) {
  if (items.length < 2) return null;
  const buttons = items.map(({ value, name, swatch }) => {
    const button = el("button", { type: "button", class: "chip", "aria-pressed": String(chosen.has(value)), click: () => {
      if (chosen.has(value) && chosen.size > 1) chosen.delete(value);
      else chosen.add(value);
      buttons.forEach((other, index) => other.setAttribute("aria-pressed", String(chosen.has(items[index].value))));
      changed();
    } }, swatch, nameNode(name));
    return button;
  });
  // Of very many, those that are not chosen are hidden at first.
  const beyond = items.length > MAX_CHIPS ? buttons.filter((_, index) => !chosen.has(items[index].value)) : [];
  beyond.forEach((button) => (button.hidden = true));
  const more = beyond.length === 0 ? null : el("button", { type: "button", click: (event) => {
    beyond.forEach((button) => (button.hidden = false));
    event.currentTarget.remove();
  } }, `${beyond.length} more`);
  return el("div", { class: "chips", role: "group", "aria-label": label }, el("span", {}, label), buttons, more);
}

function controls(s, view) {
  const redraw = () => view.redraws.forEach((draw) => draw());
  const schemes = s.schemes.map((style) => ({ value: style.text, name: style.text, swatch: schemeSwatch(style) }));
  const flows = s.flows.map((flow, index) => ({ value: index, name: flow.flow, swatch: isEmulated ? lineSwatch(programPen(s, index)) : undefined }));
  const one = s.schemes.length < 2 ? null : el("label", { class: "chips" }, el("span", {}, "Cell and estimates under"),
    el("select", { change: (event) => { view.scheme = event.target.value; redraw(); } },
      s.schemes.map((style) => el("option", { value: style.text, selected: style.text === view.scheme }, style.text))));
  const way = !isEmulated || s.cells.length < 2 ? null : el("label", { class: "chips" }, el("span", {}, "PRBs of"),
    el("select", { change: (event) => { view.direction = event.target.value; redraw(); } },
      s.cells.map((cell) => el("option", { value: cell.direction }, cell.direction === "up" ? "the uplink" : "the downlink"))));
  const parts = [chips("Schemes", schemes, view.schemes, redraw), chips(isEmulated ? "Connections" : "Flows", flows, view.flows, redraw), one, way].filter(Boolean);
  return parts.length ? el("div", { class: "controls" }, parts) : null;
}

// ---- the page -------------------------------------------------------------------------------------------------

function viewOf(s) {
  const greedy = s.flows.map((flow, index) => ({ ...flow, index })).filter((flow) => flow.greedy);
  // If several flows compete, only one scheme is shown at a time, to be readable. If there is one flow, schemes are
  // compared.
  const schemes = greedy.length > 1 ? s.schemes.slice(0, 1) : s.schemes;
  const flows = isEmulated ? firstFlows(s) : greedy.length > 1 ? greedy.map((flow) => flow.index) : [greedy[0]?.index ?? 0];
  return { schemes: new Set(schemes.map((style) => style.text)), flows: new Set(flows), scheme: s.schemes[0]?.text, direction: s.cells[0]?.direction, redraws: [], timeCharts: [], zoom: null };
}

function scenarioSection(s) {
  const title = el("div", { class: "head" }, el("h2", {}, s.name), el("span", { class: "muted" }, s.source));
  const section = el("section", { id: s.name }, title, el("p", {}, s.about));
  if (s.rows.length === 0) {
    section.append(el("p", { class: "notice" }, "No run of this scenario came to its end."));
    return section;
  }
  if (s.comparison) section.append(el("p", { class: "comparison" }, s.comparison.join(" ")));
  const source = (trace) => (trace.file === undefined ? "a recording that Airpace made, not of a network" : trace.file);
  if (s.also_replays) {
    const tables = Object.entries(s.also_replays).map(([table, trace]) => `${table}: ${source(trace)}`);
    section.append(el("p", { class: "muted" }, `${s.trace ? "Beside its trace, this" : "This"} scenario replays ${tables.join("; ")}.`));
  }
  if (s.trace) {
    const what = s.trace.file === undefined ? "a trace that Airpace made; no network was recorded" : `the trace ${s.trace.file}`;
    section.append(el("p", { class: "notice mild" }, `This link replays ${what}. A trace has the delivery opportunities of one device that takes all ` +
      "it can get. An idle cell grants light or bursty traffic differently (CellReplay, NSDI 2025): read it for bulk flows, and use a cell scenario for others."));
  }
  for (const sentence of s.replays) section.append(el("p", { class: "muted" }, sentence));
  if (isEmulated) {
    section.append(...emulatedBody(s));
    return section;
  }
  const view = viewOf(s);
  const specs = figures.filter((spec) => spec.applies(s));
  const compare = specs.filter((spec) => !spec.course).map((spec) => figureCard(s, view, spec));
  const course = specs.filter((spec) => spec.course).map((spec) => figureCard(s, view, spec));
  section.append(el("div", { class: "cards" }, [expectationsCard(s), ...compare, metricsCard(s), transfersCard(s), videosCard(s)].filter(Boolean)));
  const halves = course.filter((card) => !card.classList.contains("wide"));
  if (halves.length % 2 === 1) halves.at(-1).classList.add("wide");
  if (course.length) {
    section.append(el("h3", { style: "margin-top:1.75rem" }, `One run, seed ${s.seed}`),
      controls(s, view) ?? "", el("div", { class: "cards" }, course));
  }
  return section;
}

/// Figures and nothing else, as a notebook shows them.
function figuresAlone(s) {
  const view = viewOf(s);
  const specs = figures.filter((spec) => page.only.includes(spec.id) && spec.applies(s));
  if (specs.length === 0) return null;
  const cards = specs.map((spec) => figureCard(s, view, { ...spec, wide: true }));
  return el("section", { id: s.name }, page.scenarios.length > 1 ? el("h2", {}, s.name) : null,
    specs.some((spec) => spec.course) ? controls(s, view) : null, el("div", { class: "cards" }, cards));
}

/// Whether some flows went over real transports (`airpace agree`).
const hasWire = () => page.scenarios.some((s) => s.schemes.some((style) => / over (udp|quic)$/.test(style.text)));

function build() {
  if (page.only) {
    document.documentElement.classList.add("alone");
    const shown = page.scenarios.map(figuresAlone).filter(Boolean);
    const titles = figures.filter((spec) => page.only.includes(spec.id)).map((spec) => spec.title);
    document.getElementById("page").append(el("main", {}, shown.length > 0 ? shown
      : el("p", { class: "muted" }, `Nothing to show: this run has no data for ${titles.map((title) => `“${title}”`).join(", ")}.`)));
    return;
  }
  const names = page.scenarios.map((s) => s.name);
  document.title = `${names.slice(0, 3).join(", ")}${names.length > 3 ? ", …" : ""} · Airpace`;
  const met = page.scenarios.flatMap((s) => s.expectations).filter((verdict) => verdict.passed).length;
  const asked = page.scenarios.flatMap((s) => s.expectations).length;
  const schemes = new Set(page.scenarios.flatMap((s) => s.schemes.map((style) => style.text))).size;
  const seeds = page.seeds.length > 1 ? `${page.seeds.length} seeds` : `seed ${page.seeds[0]}`;
  const fact = (...words) => el("li", {}, ...words);
  const parts = [
    el("header", {}, el("h1", {}, names.length <= 3 ? names.join(", ") : `${names.length} scenarios`),
      el("p", { class: "muted" }, isEmulated ? "Programs behind a network that Airpace emulated" : "Congestion control over cellular links, simulated by Airpace"),
      el("ul", { class: "facts" },
        ...(isEmulated ? [fact(el("b", {}, String(page.emulation.programs.length)), page.emulation.programs.length === 1 ? " program" : " programs"), fact(el("b", {}, seeds)),
          fact(el("b", {}, `${Number((page.scenarios[0]?.duration_s ?? 0).toFixed(1))} s`)),
          fact(el("span", { class: page.emulation.fit ? "met" : "missed" }, page.emulation.fit ? "the emulator kept up" : "not fit"))]
          : [fact(el("b", {}, String(schemes)), schemes === 1 ? " scheme" : " schemes"), fact(el("b", {}, seeds)),
            fact(el("b", {}, String(page.runs_ended)), page.runs_ended === 1 ? " run" : " runs")]),
        fact("version ", el("b", {}, page.version)),
        asked ? fact(el("span", { class: met === asked ? "met" : "missed" }, `${met} of ${asked} expectations met`)) : null,
        fact("host and time: ", el("a", { href: "manifest.json" }, "manifest.json"))),
      el("div", { class: "foot" }, commandLine(page.command))),
    isEmulated ? unfitNotice() : null,
    page.complete || isEmulated ? null : el("p", { class: "notice" }, `This run is incomplete: it was interrupted after ${page.runs_ended} ` +
      `${page.runs_ended === 1 ? "run" : "runs"}. What follows shows only runs that came to their end; verdicts on expectations are missing.`),
    names.length > 1 ? el("nav", { "aria-label": "Scenarios" }, el("ul", {}, [...(page.overview ? ["overview"] : []), ...names].map((name) => el("li", {}, el("a", { href: `#${name}` }, name))))) : null,
    el("main", {}, isEmulated ? ranSection() : null, page.overview ? overviewSection(page.overview) : null, page.scenarios.map(scenarioSection)),
    el("footer", {}, (isEmulated
      ? "An emulated run happens once: the programs, the kernel and the host take part in it. Tables of every packet, grant and capacity lie beside this page as Parquet. "
      : (hasWire()
          ? "What is called over udp or over quic happened once: the kernel and the host took part in it; agree.json says whether it agrees " +
            "with the simulator. The rest depends on scenario, scheme and seed only. "
          : "Same command, same bytes: results depend on scenario, scheme and seed only. ") +
        "Tables of every packet, ACK, grant and controller state lie beside this page as Parquet. ") + "Figures are drawn with Apache ECharts (Apache License 2.0)."),
  ];
  document.getElementById("page").append(...parts.filter(Boolean));
}

build();
let pending = 0;
const redrawAll = () => { cancelAnimationFrame(pending); pending = requestAnimationFrame(() => charts.forEach((box) => box.redraw())); };
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width && !onPaper()) { width = innerWidth; redrawAll(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
