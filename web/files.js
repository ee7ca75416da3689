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
  const url = URL.createObjectURL(new Blob([rows.map((row) => row.map(cell).join(",")).join("\n") + "\n"], { type: "text/csv" }));
  save(name, url);
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

const commandLine = (command, ...buttons) => [el("code", {}, command), el("div", { class: "buttons" },
  el("button", { type: "button", click: (event) => copy(command, event.currentTarget) }, "Copy command"), buttons)];
