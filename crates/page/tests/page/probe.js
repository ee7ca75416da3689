// Tests insert this script into a copy of the page. It measures the drawn elements and sends the results to the enclosing page.
"use strict";

/// Bounding boxes of the texts of a chart, in the coordinates of its canvas.
function textsOf(chart) {
  const shown = chart.getZr().storage.getDisplayList(true).filter((each) => each.type === "tspan" && !each.invisible && each.style.text.trim());
  return shown.map((each) => {
    const rect = each.getBoundingRect().clone();
    if (each.transform) rect.applyTransform(each.transform);
    // Shrink the box by 1 px at the left and right and by 2 px at the top and bottom, because a font's boxes exceed its letters.
    return { text: each.style.text, x: rect.x + 1, y: rect.y + 2, width: rect.width - 2, height: rect.height - 4 };
  });
}

const boxesMeet = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

function measure() {
  // The XML parser's error for an exported figure; an empty string if the figure is valid.
  const svgFault = (text) => {
    const read = new DOMParser().parseFromString(text, "image/svg+xml");
    return read.querySelector("parsererror")?.textContent ?? (read.querySelector("path, rect") ? "" : "nothing is drawn");
  };
  const facts = {
    width: innerWidth,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    images: document.querySelectorAll("img").length,
    harmed: String(window.harmed),
    figures: [], legends: [], sticky: [], tips: [], heads: [], tables: [],
  };
  for (const box of document.querySelectorAll(".chart")) {
    const id = box.closest(".card").id;
    const chart = echarts.getInstanceByDom(box);
    if (!chart) {
      facts.figures.push({ id, drawn: false });
      continue;
    }
    const texts = textsOf(chart);
    const collisions = texts.flatMap((one, index) => texts.slice(0, index).filter((other) => boxesMeet(one, other)).map((other) => `${one.text} / ${other.text}`));
    const outside = texts.filter((one) => one.x < -1 || one.y < -2 || one.x + one.width > chart.getWidth() + 1 || one.y + one.height > chart.getHeight() + 2);
    facts.figures.push({ id, drawn: texts.length > 0, texts: texts.map((one) => one.text), collisions, outside: outside.map((one) => one.text),
      fits: chart.getWidth() <= box.closest(".card").clientWidth,
      svg: box.svg ? svgFault(box.svg()) : "none" });
    // The tooltip of the first panel or, if there is none, of the first series with a tooltip.
    const tipsOf = () => [...box.querySelectorAll(".tip")].at(-1);
    chart.dispatchAction({ type: "showTip", x: chart.getWidth() * 0.4, y: 120 });
    if (!tipsOf()) {
      const seriesIndex = chart.getOption().series.findIndex((series) => !series.silent);
      chart.dispatchAction({ type: "showTip", seriesIndex, dataIndex: 0 });
    }
    const shown = tipsOf();
    if (shown) facts.tips.push({ id, head: [...shown.querySelectorAll("th")].map((cell) => cell.textContent), rows: [...shown.tBodies[0].rows].map((row) => row.innerText) });
    // The headings of the tooltips from the top to the bottom of the figure.
    const heads = new Set();
    for (let y = 10; y < chart.getHeight(); y += 20) {
      chart.dispatchAction({ type: "showTip", x: chart.getWidth() * 0.4, y });
      const head = tipsOf()?.querySelector("th").textContent;
      if (head) heads.add(head);
    }
    facts.heads.push({ id, heads: [...heads] });
    chart.dispatchAction({ type: "hideTip" });
    const entries = [...box.parentElement.querySelectorAll(".key > span")].filter((entry) => entry.querySelector("svg"));
    const looks = new Map();
    for (const entry of entries) looks.set(entry.firstChild.outerHTML, [...(looks.get(entry.firstChild.outerHTML) ?? []), entry.textContent]);
    facts.legends.push({ id, entries: entries.length, alike: [...looks.values()].filter((names) => names.length > 1) });
  }
  for (const scroll of document.querySelectorAll(".scroll")) {
    const before = scroll.querySelector("tbody tr").children[1].getBoundingClientRect().right - scroll.getBoundingClientRect().left;
    scroll.scrollLeft = 150;
    const first = scroll.querySelector("tbody tr").firstChild.getBoundingClientRect();
    facts.sticky.push({ moved: scroll.scrollLeft, off: first.left - scroll.getBoundingClientRect().left });
    scroll.scrollLeft = 0;
    facts.tables.push({ first_number_ends: before, width: scroll.clientWidth });
  }
  return facts;
}

addEventListener("load", () => setTimeout(() => {
  // The page of a sweep has no figures with deferred drawing.
  if (location.hash !== "#as-seen" && typeof drawAll === "function") drawAll();
  // Wait until the figures have been drawn.
  setTimeout(() => parent.postMessage(JSON.stringify(measure()), "*"), 200);
}, 200));
