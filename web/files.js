// Files and commands: what a reader copies or saves.

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // In some browsers, pages from disk may not use the clipboard. Selecting text is always allowed.
    const field = el("textarea", { style: "position:fixed;opacity:0" });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = before), 1200);
}

function save(name, url) {
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

function saveCsv(name, rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  saveText(name, rows.map((row) => row.map(cell).join(",")).join("\n") + "\n", "text/csv");
}

function saveText(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  save(name, url);
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/// The look of a figure that is saved as SVG: ECharts writes fonts into attributes as they are, where double quotes would end them.
const lookOfSvg = () => ({ ...lookOf(), font: lookOf().font.replaceAll('"', "'") });

/// A figure as SVG, in the size and with the zoom in which it is shown.
function svgOf(option, width, height, zoom) {
  const drawn = echarts.init(null, null, { renderer: "svg", ssr: true, width, height });
  drawn.setOption(option);
  if (zoom && option.dataZoom) drawn.dispatchAction({ type: "dataZoom", ...zoom });
  const text = drawn.renderToSVGString();
  drawn.dispose();
  return text;
}

const commandLine = (command, ...buttons) => [el("code", {}, command), el("div", { class: "buttons" },
  el("button", { type: "button", click: (event) => copy(command, event.currentTarget) }, "Copy command"), buttons)];
