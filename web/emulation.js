// An emulated run: what ran behind what, how well the emulator kept up, and the connections of the programs.

const isEmulated = page.emulation !== undefined;

/// How many connections of a link are shown at first, how many have a button without being asked for, and how many rows a
/// table has until all are asked for.
const FIRST_OF_LINK = 4;
const MAX_CHIPS = 20;
const FIRST_ROWS = 12;

const isOthers = (flow) => !flow.flow.includes(" → ");
const isOfLink = (link, flow) => link.device === flow.device && link.direction === flow.direction;

/// The indices of a link's connections, the largest first. What holds the others is last.
const flowsOfLink = (s, link) => s.flows.map((_, index) => index).filter((index) => isOfLink(link, s.flows[index]));

/// The line of a connection. The largest of all links come first, so that those that are shown together look different.
function programPen(s, index) {
  const links = s.links.length;
  const place = Math.max(s.links.findIndex((link) => isOfLink(link, s.flows[index])), 0);
  const rank = flowsOfLink(s, s.flows[index]).indexOf(index);
  const number = rank * links + place;
  const types = ["solid", "dashed", "dotted"];
  return isOthers(s.flows[index])
    ? { shade: s.schemes[0].colour, type: types[(place + 2) % 3] }
    : { shade: paletteOf(number), type: types[Math.floor(number / page.palette.length) % 3] };
}

/// The connections that are shown at first: the largest of each link, and its others.
const firstFlows = (s) => s.links.flatMap((link) => flowsOfLink(s, link).filter((index, rank) => rank < FIRST_OF_LINK || isOthers(s.flows[index])));

/// A card with a heading and a table of rows of [what, value].
const factsCard = (title, note, rows, id) => el("article", { class: "card", id }, el("h3", {}, title), note ? el("p", { class: "muted" }, note) : null,
  el("table", { class: "plain" }, el("tbody", {}, rows.map(([what, value]) => el("tr", {}, el("th", { scope: "row" }, what), el("td", {}, value))))));

function ranSection() {
  const { programs, audit } = page.emulation;
  const program = ({ place, command, ended, failed }) => [place, [el("code", {}, command), el("small", { class: failed ? "missed" : "" }, ended)]];
  const cards = [
    programs.length ? factsCard("What ran", "Each program ran unmodified, behind its device of the scenario or on the server's side.", programs.map(program), "ran") : null,
    audit.length ? factsCard("How the emulator kept up", "What it was late is in one-way delays, and in no queueing delay.", audit, "audit") : null,
  ].filter(Boolean);
  return cards.length ? el("section", { id: "run" }, el("div", { class: "cards" }, cards)) : null;
}

const unfitNotice = () => (page.emulation.fit ? null : el("div", { class: "notice", role: "alert" },
  el("b", {}, "This run is not fit: do not rely on its numbers."),
  el("ul", {}, page.emulation.unfit_because.map((reason) => el("li", {}, reason)))));

const notJudged = (s) => (s.not_judged.length ? el("details", { class: "notice mild" },
  el("summary", {}, `Not judged: ${s.not_judged.length} ${s.not_judged.length === 1 ? "expectation" : "expectations"} of schemes that were not run`),
  el("ul", {}, s.not_judged.map(({ scheme, say }) => el("li", {}, `${scheme}: ${say}`)))) : null);

/// A table of links: all connections of a device and direction together.
function linksCard(s) {
  const heads = [...s.columns.slice(0, s.links[0]?.texts.length ?? 0).map((column) => [column.heading, column.unit]), ["packets", ""], ["connections", ""]];
  const rows = s.links.map((link) => el("tr", {}, el("th", { scope: "row" }, link.name), [...link.texts, link.packets, link.connections].map((text) => el("td", {}, text))));
  return el("article", { class: "card wide", id: `${s.name}.links` }, el("h3", {}, "Each direction of each device"),
    el("p", { class: "muted" }, "All connections together, over the whole run. Devices are counted from 1, as for --device; tables and CSV have their index, from 0. Loss counts packets that were dropped or lost in the network."),
    table([el("th", { class: "name", scope: "col" }, "direction"), ...heads.map(([heading, unit]) => el("th", { scope: "col" }, heading, el("small", {}, unit)))], el("tbody", {}, rows)));
}

/// A table of connections. Its rows after the first few are hidden until they are asked for.
function connectionsCard(s) {
  const rows = s.rows.map((row, index) => {
    const flow = s.flows[index];
    const name = el("th", { scope: "row" }, nameNode(row.flow), isOthers(flow) ? null : el("small", {}, s.links.find((link) => isOfLink(link, flow))?.name ?? ""));
    return { values: row.cells.map((cell) => cell.mean), cells: [name, row.cells.map((cell) => el("td", {}, cell.text))].flat() };
  });
  const card = el("article", { class: "card wide", id: `${s.name}.table` }, el("h3", {}, "Connections"),
    el("p", { class: "muted" }, "Each direction of a connection, from its first packet to its last; those with most bytes first. Press a heading to sort."),
    sortable("connection", s.columns, rows),
    el("div", { class: "foot" },
      rows.length > FIRST_ROWS ? el("button", { type: "button", class: "all", click: (event) => { card.classList.remove("few"); event.currentTarget.remove(); } }, `Show all ${rows.length}`) : null,
      el("button", { type: "button", click: () => saveCsv(`${s.name}-connections.csv`, [
        ["connection", "device", "direction", ...s.columns.map((column) => column.path)],
        ...s.rows.map((row, index) => [row.flow, s.flows[index].device, s.flows[index].direction, ...row.cells.map((cell) => cell.mean)]),
      ]) }, "CSV")));
  if (rows.length > FIRST_ROWS) card.classList.add("few");
  return card;
}

/// What the page shows of an emulated run's scenario.
function emulatedBody(s) {
  const view = viewOf(s);
  const specs = [...s.links.map((link) => linkFigure(s, link)), ...figures.filter((spec) => spec.course && spec.applies(s))];
  const cards = specs.map((spec) => figureCard(s, view, spec));
  const halves = cards.filter((card) => !card.classList.contains("wide"));
  if (halves.length % 2 === 1) halves.at(-1).classList.add("wide");
  const compared = figures.filter((spec) => spec.compared && spec.applies(s)).map((spec) => figureCard(s, view, spec));
  return [s.agreement ? el("div", { class: "cards" }, agreementCard(s), compared) : null, notJudged(s), el("div", { class: "cards" }, linksCard(s)),
    ...(s.flows.length ? [controls(s, view), el("div", { class: "cards" }, cards, connectionsCard(s))]
      : [el("p", { class: "notice mild" }, "No packet crossed the network.")])].filter(Boolean);
}
