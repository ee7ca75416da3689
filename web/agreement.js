// Of an emulated run that was compared with virtual time: the verdict and its numbers.

function agreementCard(s) {
  if (!s.agreement) return null;
  const { agrees, unfit_because, objections, differences, fates, counts, most_ms } = s.agreement;
  const heading = (name, unit) => el("th", { scope: "col" }, name, unit ? el("small", {}, unit) : null);
  const rows = (list) => el("tbody", {}, list.map(([what, texts]) => el("tr", {}, el("th", { scope: "row" }, what), texts.map((text) => el("td", {}, text)))));
  const verdict = agrees
    ? `They agree: the same packets were dropped, and 99 of 100 departures are at most ${most_ms} ms apart.`
    : unfit_because.length ? "The machine was too slow, so this is no result about the emulator." : "They do not agree.";
  const said = [...unfit_because, ...objections];
  return el("article", { class: "card wide", id: `${s.name}.agreement` }, el("h3", {}, "Real time beside virtual time"),
    el("p", { class: agrees ? "met" : "missed" }, verdict),
    said.length ? el("ul", {}, said.map((line) => el("li", {}, line))) : null,
    table([el("th", { class: "name", scope: "col" }, "how far apart"), heading("median", "ms"), heading("p99", "ms"), heading("max", "ms")],
      rows(differences.map(([what, ...texts]) => [what, texts]))),
    table([el("th", { class: "name", scope: "col" }, "which packets"), heading("compared"), heading("dropped by both"), heading("by real time only"), heading("by virtual time only")], rows(fates)),
    table([el("th", { class: "name", scope: "col" }, "packets"), heading("number")], rows(counts.map(([what, text]) => [what, [text]]))),
    el("div", { class: "foot" }, commandLine(s.command)));
}
