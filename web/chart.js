// What all figures share: the list they register in, how things look, and words for numbers.
"use strict";

/// Every figure, in the order of the page. A figure is a file in `figures/` that calls `figure({...})`:
///   id, title, note       words
///   wide                  whether it takes the page's whole width
///   over                  "time" if its x axis is the run's time: zoomed together with the others
///   applies(s)            whether scenario `s` has the data
///   height(s, view)       pixels
///   option(s, view, look) ECharts' option: draws what `s` holds, computes no number
///   csv(s)                [header, ...rows]
///   key(s, view, look)    optional, under the figure: [[colour, words, dashed], ...]
///   course                whether its command is the one of a single seed
const figures = [];
const figure = (spec) => figures.push(spec);

/// Colours safe for colour-blind readers (Okabe and Ito), for flows and users.
const PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8c7a00"];

/// States by name: the same colour in every figure; green is where a scheme wants to be.
const STATE_COLOURS = {
  Start: "#E69F00", Startup: "#E69F00", SlowStart: "#E69F00", "Slow start": "#E69F00", HyStart: "#E69F00",
  Drain: "#56B4E9", Draining: "#56B4E9",
  Wireless: "#009E73", Tracking: "#009E73", Fixed: "#009E73", ProbeBW: "#009E73", ProbeBw: "#009E73", Avoidance: "#009E73", CongestionAvoidance: "#009E73",
  ProbeRTT: "#CC79A7", ProbeRtt: "#CC79A7", Recovery: "#CC79A7",
  Internet: "#D55E00", Fallback: "#8b949e", Idle: "#8b949e",
};

const stateColour = (state, states) =>
  STATE_COLOURS[state] ??
  Object.entries(STATE_COLOURS).find(([known]) => state.toLowerCase().startsWith(known.toLowerCase()))?.[1] ??
  PALETTE[states.indexOf(state) % PALETTE.length];

/// The page's colours as they are now, light or dark.
function lookOf() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: colour("text"), muted: colour("muted"), faint: colour("faint"), surface: colour("surface"),
    capacity: colour("capacity"), dark: matchMedia("(prefers-color-scheme: dark)").matches,
    font: style.fontFamily,
  };
}

/// A scheme's colour where it can be seen: black is drawn in the colour of text.
const visible = (colour, look) => (look.dark && /^#[0-3].[0-3].[0-3].$/.test(colour) ? look.text : colour);

const styleOf = (s, scheme) => s.schemes.find((known) => known.text === scheme);

/// What curves over several schemes and flows look like: by scheme, or by flow where only one scheme is shown.
function penOf(s, view, course, look) {
  const style = styleOf(s, course.scheme);
  const several = view.flows.size > 1;
  const byFlow = several && view.schemes.size === 1;
  const dashes = ["solid", "dashed", "dotted"];
  return {
    colour: visible(byFlow ? PALETTE[course.flow % PALETTE.length] : style.colour, look),
    type: byFlow ? "solid" : several ? dashes[course.flow % 3] : style.variant ? "dashed" : "solid",
    name: several ? (byFlow ? s.flows[course.flow].flow : `${course.scheme} · ${s.flows[course.flow].flow}`) : course.scheme,
  };
}

const isShown = (view, course) => view.schemes.has(course.scheme) && view.flows.has(course.flow);

/// A number in few characters, or a dash where there is none.
function words(value, digits) {
  if (value === null || value === undefined) return "–";
  if (digits !== undefined) return value.toFixed(digits);
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/// The middle of each interval, in seconds, beside its value: where a mean belongs.
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
const timeAxis = (s, look, more) => axisOf(look, { type: "value", min: 0, max: s.duration_s, ...more });
/// Zooming by pinch or ctrl and wheel, and by a slider if `sliderLeft` says where it begins.
const zoomOf = (look, axes, sliderLeft) => [
  { type: "inside", id: "zoom", xAxisIndex: axes, filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false },
  ...(sliderLeft
    ? [{ type: "slider", id: "slider", xAxisIndex: axes, filterMode: "none", height: 22, bottom: 6, left: sliderLeft, right: 24,
        brushSelect: false, showDetail: false, borderColor: look.faint, fillerColor: look.faint + "80",
        dataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } },
        selectedDataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } } }]
    : []),
];

/// Ticks 1, 2, 5, … between two positive numbers, closer where they lie close: for a logarithmic axis.
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
