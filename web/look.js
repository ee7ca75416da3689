// How things look: the theme, its colours, and the signs for a scheme, a flow or a state in figures and legends.

/// The page's colours as they are now: light, dark, or light because it is printed; and how wide the page is.
function lookOf() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: colour("text"), muted: colour("muted"), faint: colour("faint"), surface: colour("surface"),
    capacity: colour("capacity"), theme: colour("theme"), font: style.fontFamily,
    width: onPaper() ? PAPER_WIDTH : innerWidth,
  };
}

const shadeOf = (shade, look) => shade[look.theme];
const paletteOf = (index) => page.palette[index % page.palette.length];
const styleOf = (s, scheme) => s.schemes.find((known) => known.text === scheme);

/// A marker's path in a box of 14 by 14, for figures and legends alike.
const markerPath = (marker) => page.markers[marker] ?? page.markers.circle;
const markerOf = (marker) => `path://${markerPath(marker)}`;

/// Strokes over a tile of 8 by 8, for figures and legends alike; `plain` has none.
const PATTERNS = {
  rising: "M-2 2L2 -2M-1 9L9 -1M6 10L10 6",
  falling: "M-2 6L2 10M-1 -1L9 9M6 -2L10 2",
  upright: "M4 0V8",
  level: "M0 4H8",
  dots: "M3 4H5",
  cross: "M4 0V8M0 4H8",
};
const TILE = 8;
const strokeOf = (pattern) => (pattern === "dots" ? 3 : 1.8);

function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
/// The sign in a legend, in a shade that follows the theme.
const swatch = (shade, width, ...children) => svg("svg", { class: "swatch", width, height: 14, viewBox: `0 0 ${width} 14`, "aria-hidden": "true",
  style: shade ? `color:${shade.light};color:light-dark(${shade.light},${shade.dark})` : "" }, ...children);
const DASHES = { solid: "none", dashed: "5 3", dotted: "1.5 2.5" };

/// A line as `penOf` describes it, with its marker if it has one.
const lineSwatch = (pen) => swatch(pen.shade, 26,
  svg("path", { d: "M1 7H25", stroke: "currentColor", "stroke-width": 2, "stroke-dasharray": DASHES[pen.type] }),
  ...(pen.marker ? [svg("path", { d: markerPath(pen.marker), transform: "translate(7.9 1.9) scale(0.73)", stroke: "currentColor", "stroke-width": 2.2,
    fill: pen.hollow ? "var(--surface)" : "currentColor" })] : []));
/// A scheme's marker.
const schemeSwatch = (style) => swatch(style.colour, 14, svg("path", { d: markerPath(style.marker), transform: "translate(1.4 1.4) scale(0.8)",
  stroke: "currentColor", "stroke-width": 2.2, fill: style.variant ? "var(--surface)" : "currentColor" }));
/// An area of one colour of the theme, such as `var(--capacity)`, or of a shade.
const areaSwatch = (fill) => swatch(typeof fill === "string" ? null : fill, 14, svg("rect", { x: 0.5, y: 0.5, width: 13, height: 13, rx: 2,
  fill: typeof fill === "string" ? fill : "currentColor", stroke: "var(--muted)" }));
const stateSwatch = (state) => {
  const { colour, pattern } = stateLook(state);
  const strokes = [0, 8, 16].flatMap((x) => [0, 8].map((y) => svg("path", { d: PATTERNS[pattern] ?? "", transform: `translate(${x} ${y})` })));
  return swatch(colour, 24, svg("rect", { width: 24, height: 14, fill: "currentColor" }),
    svg("g", { stroke: "var(--surface)", "stroke-width": strokeOf(pattern), fill: "none" }, ...strokes));
};

const stateLook = (state) => page.states.find((look) => look.state === state);
const tiles = new Map();
/// The fill of the ribbon where a controller is in `state`: its colour, under strokes.
function stateFill(state, look) {
  const { colour, pattern } = stateLook(state);
  if (!PATTERNS[pattern]) return shadeOf(colour, look);
  const name = `${state} ${look.theme}`;
  if (!tiles.has(name)) {
    const fine = 3;
    const image = el("canvas", { width: TILE * fine, height: TILE * fine });
    const pen = image.getContext("2d");
    pen.scale(fine, fine);
    pen.fillStyle = shadeOf(colour, look);
    pen.fillRect(0, 0, TILE, TILE);
    pen.strokeStyle = look.surface;
    pen.lineWidth = strokeOf(pattern);
    pen.stroke(new Path2D(PATTERNS[pattern]));
    tiles.set(name, { image, imageWidth: TILE * fine, imageHeight: TILE * fine, repeat: "repeat", scaleX: 1 / fine, scaleY: 1 / fine });
  }
  return tiles.get(name);
}

/// How curves of several schemes and flows look. The scheme decides; if only one scheme is shown, or none is
/// known, the flow does.
function penOf(s, view, course, look) {
  const style = styleOf(s, course.scheme);
  const several = view.flows.size > 1;
  const byFlow = several && view.schemes.size === 1;
  if (isEmulated) {
    const { shade, type } = programPen(s, course.flow);
    return { shade, colour: shadeOf(shade, look), type, marker: null, hollow: false, name: s.flows[course.flow].flow };
  }
  const shade = byFlow ? paletteOf(course.flow) : style.colour;
  return {
    shade,
    colour: shadeOf(shade, look),
    type: byFlow ? "solid" : several ? ["solid", "dashed", "dotted"][course.flow % 3] : style.variant ? "dashed" : "solid",
    marker: byFlow ? null : style.marker,
    hollow: style.variant,
    name: several ? (byFlow ? s.flows[course.flow].flow : `${course.scheme} · ${s.flows[course.flow].flow}`) : course.scheme,
  };
}

/// The series of a curve: its line, and some markers on it, so that it can be told from others without its colour.
/// It is number `index` of `count` curves. Markers of different curves stand at different places.
function curve(pen, data, index, count, look, more) {
  const line = {
    name: pen.name, type: "line", data, showSymbol: false, connectNulls: false, emphasis: { disabled: true }, z: 3,
    lineStyle: { width: 2, type: pen.type, color: pen.colour }, itemStyle: { color: pen.colour }, ...more,
  };
  if (!pen.marker) return [line];
  const every = Math.max(Math.floor(data.length / 7), 1);
  const first = Math.floor((index + 0.5) * every / count);
  const places = data.filter(([x, y], place) => place % every === first && x !== null && y !== null && y !== undefined);
  const { xAxisIndex, yAxisIndex } = line;
  return [line, {
    type: "scatter", silent: true, xAxisIndex, yAxisIndex, data: places, symbol: markerOf(pen.marker), symbolSize: 9, z: 4, tooltip: { show: false },
    itemStyle: pen.hollow ? { color: look.surface, borderColor: pen.colour, borderWidth: 2 } : { color: pen.colour, borderColor: look.surface, borderWidth: 0.5 },
  }];
}
