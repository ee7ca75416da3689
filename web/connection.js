// Names of connections, which may be long: `tcp [fd00:1:2:3:4:5:6:7]:40312 → [fd00::64:1]:443`.

/// An address, in brackets if it is of IPv6 and a port follows; then the port.
const END = String.raw`(\[[^\]\s]*\]|[\d.]+|[\da-f:.]+)(:\d{1,5})?`;
const CONNECTION = new RegExp(`^(\\w{1,10}) ${END} → ${END}$`);

/// A long address of IPv6 by its first group and its last two.
function shortened(address) {
  const groups = address.replace(/^\[|\]$/g, "").split(":");
  if (groups.length < 3 || address.length <= 18) return address;
  const short = `${groups[0]}:…:${groups.slice(-2).join(":")}`;
  return address.startsWith("[") ? `[${short}]` : short;
}

/// A name for a table, a legend or a tooltip. Long addresses of a connection are shortened. Where there is still no room,
/// they end in an ellipsis and the ports stay. The whole name is the tooltip. Other names stay as they are.
function nameNode(name) {
  const parts = typeof name === "string" && name.length <= 200 ? CONNECTION.exec(name) : null;
  if (!parts) return name;
  const [, protocol, source, from, destination, to] = parts;
  const end = (before, address, port) => el("span", { class: "end" }, el("span", {}, `${before} `), el("span", { class: "address" }, shortened(address)), port ? el("span", {}, port) : null);
  return el("span", { class: "connection", title: name }, end(protocol, source, from), end("→", destination, to));
}
