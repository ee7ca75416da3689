// Tooltips of figures.

/// A heading and rows of cells, each text or a node. `columns` are the headings of the cells after the first two.
/// It is made of nodes, never of markup, because a scenario may give its flows any name.
function tip(heading, rows, columns = []) {
  const cell = (content) => el("td", {}, nameNode(content));
  return el("table", { class: "tip" },
    el("thead", {}, el("tr", {}, el("th", { colspan: 2 }, nameNode(heading)), columns.map((column) => el("th", {}, column)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell)))));
}

/// The tooltip of one thing: `of(params)` gives heading and rows of [what, value with unit].
const tipOfItem = (look, of) => tooltipOf(look, { trigger: "item", formatter: (params) => tip(...of(params)) });

/// The tooltip of an instant: `of(time in s)` gives rows and columns.
/// The x axis is named. Otherwise, if the other axis has categories, ECharts would give the category under the pointer.
const tipOfTime = (look, of) => tooltipOf(look, { trigger: "axis", axisPointer: { type: "line", axis: "x", lineStyle: { color: look.muted } },
  formatter: ([{ axisValue }]) => {
    const [rows, columns] = of(axisValue);
    return tip(`at ${words(axisValue)} s`, rows, columns);
  } });

/// The value of the interval that holds an instant.
const atTime = (s, values, time) => values[Math.min(Math.floor(time / s.interval_s), values.length - 1)];
