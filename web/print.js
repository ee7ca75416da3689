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
  const parts = [[]];
  let left = scroll.clientWidth - widths[0];
  for (let column = 1; column < widths.length; column++) {
    if (widths[column] > left && parts.at(-1).length > 0) {
      parts.push([]);
      left = scroll.clientWidth - widths[0];
    }
    parts.at(-1).push(column);
    left -= widths[column];
  }
  scroll.classList.add("parted");
  scroll.after(...parts.map((columns) => {
    const part = table.cloneNode(true);
    for (const row of part.rows) [...row.cells].forEach((cell, column) => column > 0 && !columns.includes(column) && cell.remove());
    return el("div", { class: "part" }, part);
  }));
}
