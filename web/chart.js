// Code that all figures share: the list of figures, axes, and numbers as text.
"use strict";

const page = JSON.parse(document.getElementById("data").textContent);

/// Makes an element: `el("p", { class: "muted" }, "text", child)`. Attributes that are functions become listeners.
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/// Every figure, in the order of the page. A figure is a file in `figures/` that calls `figure({...})`:
///   id, title, note       texts
///   also(s)               optional: what the note says besides, of scenario `s` only; empty if nothing
///   compared              whether it belongs to a comparison of real time with virtual time
///   wide                  whether it takes the page's whole width
///   over                  "time" if its x axis is the run's time: such figures are zoomed together
///   applies(s)            whether scenario `s` has the data
///   height(s, view, look) pixels
///   option(s, view, look) ECharts' option: draws what `s` holds, computes no number
///   csv(s)                [header, ...rows]
///   key(s, view, look)    optional, under the figure: [[swatch or null, text], ...]
///   course                whether its command runs a single seed
const figures = [];
const figure = (spec) => figures.push(spec);

/// The height of a figure of one panel, in pixels: `screen`, or on paper as much as lets two figures stand on a page.
const heightOfPanel = (screen) => (onPaper() ? 270 : screen);

const isShown = (view, course) => view.schemes.has(course.scheme) && view.flows.has(course.flow);

/// A number of a curve in few characters, or a dash where there is none. Metrics come as text from the folder.
function words(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/// The middle of each interval, in seconds, with its value: a mean is drawn at the middle.
const overTime = (s, values) => values.map((value, index) => [(index + 0.5) * s.interval_s, value]);

const axisText = (look) => ({ color: look.muted, fontSize: 14, fontFamily: look.font });
const axisOf = (look, more) => ({
  nameLocation: "middle",
  axisLabel: { ...axisText(look), hideOverlap: true },
  nameTextStyle: axisText(look),
  axisLine: { lineStyle: { color: look.muted } },
  axisTick: { lineStyle: { color: look.muted } },
  splitLine: { lineStyle: { color: look.faint } },
  ...more,
});
const tooltipOf = (look, more) => ({
  backgroundColor: look.surface, borderColor: look.faint, confine: true,
  textStyle: { color: look.text, fontSize: 14, fontFamily: look.font },
  ...more,
});
/// The title of a panel, above its y axis.
const panelTitle = (look, text, top) => ({
  text, left: 4, top, textStyle: { color: look.muted, fontSize: 14, fontWeight: "normal", fontFamily: look.font },
});
/// The axis of a run's time. A run that programs made lasts no round number of seconds, and its last label would not be one.
const timeAxis = (s, look, more) => axisOf(look, {
  type: "value", min: 0, max: s.duration_s, ...more,
  axisLabel: { ...axisText(look), hideOverlap: true, formatter: (seconds) => String(Number(seconds.toFixed(3))),
    ...(Number.isInteger(s.duration_s * 10) ? {} : { showMaxLabel: false }), ...more?.axisLabel },
});
/// Zooming by pinch or ctrl and wheel, and by a slider if `sliderLeft` gives its left edge.
const zoomOf = (look, axes, sliderLeft) => [
  { type: "inside", id: "zoom", xAxisIndex: axes, filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false },
  ...(sliderLeft
    ? [{ type: "slider", id: "slider", xAxisIndex: axes, filterMode: "none", height: 22, bottom: 6, left: sliderLeft, right: 24,
        brushSelect: false, showDetail: false, borderColor: look.faint, fillerColor: look.faint + "80",
        dataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } },
        selectedDataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } } }]
    : []),
];

/// Ticks 1, 2, 5, … between two positive numbers, for a logarithmic axis. Ticks are closer if the two numbers are
/// close.
function logTicks(low, high) {
  const steps = high / low > 8 ? [1, 2, 5] : [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
  const ticks = [];
  for (let decade = 10 ** Math.floor(Math.log10(low)); decade <= high; decade *= 10) {
    for (const step of steps) {
      const tick = Number((step * decade).toPrecision(2));
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks;
}
function logAxis(look, values, more) {
  const known = values.filter((value) => value > 0);
  const [low, high] = known.length ? [Math.min(...known) / 1.15, Math.max(...known) * 1.15] : [1, 100];
  const ticks = logTicks(low, high);
  return axisOf(look, {
    type: "log", min: low, max: high,
    axisLabel: { ...axisText(look), customValues: ticks, hideOverlap: true, formatter: (value) => String(Number(value.toPrecision(3))) },
    axisTick: { customValues: ticks, lineStyle: { color: look.muted } },
    splitLine: { show: false },
    ...more,
  });
}
