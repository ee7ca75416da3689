// Finds places for names beside their markers.

const meet = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
const within = (a, area) => a.x >= area.x && a.y >= area.y && a.x + a.width <= area.x + area.width && a.y + a.height <= area.y + area.height;

/// The distance between two boxes.
const gap = (a, b) => Math.hypot(Math.max(a.x - b.x - b.width, b.x - a.x - a.width, 0), Math.max(a.y - b.y - b.height, b.y - a.y - a.height, 0));

/// The distances from its marker at which a name may stand, in pixels. From the third on, a line leads from the marker
/// to the name. At the first two there is no line, so no other marker may be nearer to the name.
const STEPS = [4, 12, 24, 38, 54, 72, 92, 114, 138, 164, 192, 224, 260];
const LED = 2;

/// The point of a box that is nearest to a marker.
const nearest = (box, { x, y }) => ({ x: Math.min(Math.max(x, box.x), box.x + box.width), y: Math.min(Math.max(y, box.y), box.y + box.height) });

/// The line from a marker to its name, as small boxes that nothing may cover.
function leadTo(box, point) {
  const end = nearest(box, point);
  const pieces = Math.ceil(Math.hypot(end.x - point.x, end.y - point.y) / 4);
  return Array.from({ length: pieces - 1 }, (_, piece) => {
    const part = (piece + 1) / pieces;
    return { x: point.x + (end.x - point.x) * part - 1, y: point.y + (end.y - point.y) * part - 1, width: 2, height: 2 };
  }).filter((piece) => Math.hypot(piece.x + 1 - point.x, piece.y + 1 - point.y) > point.radius);
}

/// For each of `points` ({ x, y, radius, width, height of its name }): the box of its name, and whether a line must
/// lead to it. No name covers a marker, another name or one of the boxes `taken`, and none leaves `area`. `null` where
/// there is no room.
function placeNames(points, area, taken) {
  const markers = points.map(({ x, y, radius }) => ({ x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius }));
  const middle = area.x + area.width / 2;
  const placed = [...taken];
  const boxes = points.map(() => null);
  // The point with the least room around it is placed first.
  const crowd = (point) => points.filter((other) => Math.abs(other.x - point.x) < 90 && Math.abs(other.y - point.y) < 40).length;
  const order = points.map((_, index) => index).sort((a, b) => crowd(points[b]) - crowd(points[a]) || a - b);
  const isFree = (box) => !placed.some((other) => meet(box, other));
  const place = (index, mayCross) => {
    const { x, y, radius, width, height } = points[index];
    // The direction towards the middle is tried first, then directions further and further to both sides.
    const towards = x < middle ? 0 : Math.PI;
    const angles = Array.from({ length: 32 }, (_, turn) => towards + (turn % 2 ? 1 : -1) * Math.ceil(turn / 2) * Math.PI / 16);
    for (const [far, step] of STEPS.entries()) {
      for (const angle of angles) {
        const [right, down] = [Math.cos(angle), Math.sin(angle)];
        const box = { x: x + right * (radius + step + width / 2) - width / 2, y: y + down * (radius + step + height / 2) - height / 2, width, height, leads: far >= LED };
        const isOwn = () => box.leads || markers.every((marker, other) => other === index || gap(box, marker) > gap(box, markers[index]) + 3);
        if (!within(box, area) || !isFree(box) || markers.some((marker) => meet(box, marker)) || !isOwn()) continue;
        const lead = box.leads ? leadTo(box, points[index]) : [];
        if (mayCross || lead.every(isFree)) return [box, lead];
      }
    }
    return null;
  };
  for (const index of order) {
    // A line may cross other things only if there is no place where it does not.
    const found = place(index, false) ?? place(index, true);
    if (!found) continue;
    const [box, lead] = found;
    boxes[index] = box;
    placed.push(box, ...lead);
  }
  return boxes;
}
