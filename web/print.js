// Printing: everything is drawn, dark on light. Tables that are too wide are split into parts below each other.

/// The width of the page on paper, in CSS pixels: `.paper body` in the style sheet. A4 and Letter are wider.
const PAPER_WIDTH = 700;
const onPaper = () => document.documentElement.classList.contains("paper");

addEventListener("beforeprint", () => {
  document.documentElement.classList.add("paper");
  document.querySelectorAll(".scroll").forEach(intoParts);
  drawAll();
});
addEventListener("afterprint", () => {
  document.documentElement.classList.remove("paper");
  document.querySelectorAll(".part").forEach((part) => part.remove());
  document.querySelectorAll(".parted").forEach((scroll) => scroll.classList.remove("parted"));
  drawAll();
});

/// Puts copies of a table after it, each with the first column and as many others as fit the page's width.
function intoParts(scroll) {
  const table = scroll.firstElementChild;
  const widths = [...table.tHead.rows[0].cells].map((cell) => cell.getBoundingClientRect().width);
  // As many parts as are needed, each with the same number of columns where that fits: no part has a single column.
  const room = scroll.clientWidth - widths[0];
  const partsOf = (most) => widths.slice(1).reduce((parts, width, index) => {
    const last = parts.at(-1);
    if (last.columns.length > 0 && (last.columns.length === most || width > last.left)) parts.push({ columns: [], left: room });
    parts.at(-1).columns.push(index + 1);
    parts.at(-1).left -= width;
    return parts;
  }, [{ columns: [], left: room }]);
  const count = partsOf(Infinity).length;
  const even = partsOf(Math.ceil((widths.length - 1) / count));
  const parts = (even.length === count ? even : partsOf(Infinity)).map(({ columns }) => columns);
  scroll.classList.add("parted");
  scroll.after(...parts.map((columns) => {
    const part = table.cloneNode(true);
    for (const row of part.rows) [...row.cells].forEach((cell, column) => column > 0 && !columns.includes(column) && cell.remove());
    return el("div", { class: "part" }, part);
  }));
}
