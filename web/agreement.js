// Of an emulated run that was compared with virtual time: the verdict and its numbers.

function agreementCard(s) {
  if (!s.agreement) return null;
  const { agrees, objections, differences, counts, most_ms } = s.agreement;
  const heading = (name, unit) => el("th", { scope: "col" }, name, el("small", {}, unit));
  const body = el("tbody", {}, differences.map(([what, ...texts]) => el("tr", {}, el("th", { scope: "row" }, what), texts.map((text) => el("td", {}, text)))));
  return el("article", { class: "card wide", id: `${s.name}.agreement` }, el("h3", {}, "Real time beside virtual time"),
    el("p", { class: agrees ? "met" : "missed" }, agrees
      ? `They agree: the same packets were dropped, and 99 of 100 departures are at most ${most_ms} ms apart.`
      : "They do not agree."),
    objections.length ? el("ul", {}, objections.map((said) => el("li", {}, said))) : null,
    table([el("th", { class: "name", scope: "col" }, "how far apart"), heading("median", "ms"), heading("p99", "ms"), heading("max", "ms")], body),
    table([el("th", { class: "name", scope: "col" }, "packets"), el("th", { scope: "col" }, "number")],
      el("tbody", {}, counts.map(([what, text]) => el("tr", {}, el("th", { scope: "row" }, what), el("td", {}, text))))),
    el("div", { class: "foot" }, commandLine(s.command)));
}
