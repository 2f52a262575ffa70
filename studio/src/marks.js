// What is drawn over the map: labels by shape and colour, the point that is asked about, the
// cursor, and the stroke under way.

const FILL = { positive: "#0072b2", negative: "#d55e00", unknown: "#6b7480" };
const CASING = "#ffffff";
const SMALL = 7; // screen pixels: labels are drawn no smaller
const PLAIN = 20_000; // labels in sight: more are drawn as the pixels they are

/** Draw everything onto the canvas; `view` tells what of the scene is in sight. */
export function drawMarks(context, frame, { state, stroke, hover, blind }) {
  if (!state.scene) return;
  if (!blind) drawLabels(context, frame, state);
  drawAsked(context, frame, state);
  if (state.pinned) outlinePixel(context, frame, state.pinned, "#ffffff");
  if (stroke) drawStroke(context, frame, stroke, state);
  else if (hover && ["brush", "erase"].includes(state.tool)) drawBrush(context, frame, hover, state);
  if (state.cursor) drawCursor(context, frame, state.cursor);
}

function drawLabels(context, { place, scale, view }, state) {
  const { columns } = state.scene;
  const seen = { positive: [], negative: [], unknown: [] };
  let total = 0;
  for (const [flat, kind] of state.pixels) {
    const row = Math.floor(flat / columns);
    const column = flat - row * columns;
    if (row < view.top - 2 || row > view.bottom + 2 || column < view.left - 2 || column > view.right + 2) continue;
    seen[kind].push(column, row);
    total += 1;
  }
  const many = total > PLAIN;
  const size = many ? Math.max(1.5, scale) : Math.max(SMALL, Math.min(scale, 14 + 0.35 * scale));
  for (const [kind, places] of Object.entries(seen)) {
    if (!places.length) continue;
    const path = new Path2D();
    for (let i = 0; i < places.length; i += 2) {
      const [x, y] = place(places[i] + 0.5, places[i + 1] + 0.5);
      if (many) path.rect(x - size / 2, y - size / 2, size, size);
      else addShape(path, kind, x, y, size / 2);
    }
    if (!many) {
      context.lineWidth = 3;
      context.strokeStyle = CASING;
      context.stroke(path);
    }
    context.fillStyle = FILL[kind];
    context.fill(path);
  }
}

/** A disc for the class, a square for what it is not, a diamond for what nobody knows. */
function addShape(path, kind, x, y, r) {
  if (kind === "positive") {
    path.moveTo(x + r, y);
    path.arc(x, y, r, 0, 2 * Math.PI);
  } else if (kind === "negative") {
    path.rect(x - 0.85 * r, y - 0.85 * r, 1.7 * r, 1.7 * r);
  } else {
    path.moveTo(x, y - 1.15 * r);
    path.lineTo(x + 1.15 * r, y);
    path.lineTo(x, y + 1.15 * r);
    path.lineTo(x - 1.15 * r, y);
    path.closePath();
  }
}

function cased(context, path, inner = "#111820", width = 2) {
  context.lineWidth = width + 2;
  context.strokeStyle = CASING;
  context.stroke(path);
  context.lineWidth = width;
  context.strokeStyle = inner;
  context.stroke(path);
}

function drawAsked(context, { place, scale }, state) {
  const points =
    state.tab === "next" ? state.suggestions.points : state.tab === "verify" ? state.verification.points : [];
  for (const point of points) {
    const [x, y] = place(point.column + 0.5, point.row + 0.5);
    if (point.id === state.current) {
      const r = Math.max(15, 0.75 * scale + 9);
      const ring = new Path2D();
      ring.arc(x, y, r, 0, 2 * Math.PI);
      for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
        ring.moveTo(x + dx * r, y + dy * r);
        ring.lineTo(x + dx * (r + 9), y + dy * (r + 9));
      }
      cased(context, ring);
      outlinePixel(context, { place, scale }, point, "#ffffff");
    } else if (state.tab === "next" && !point.answer) {
      const dot = new Path2D();
      dot.arc(x, y, 6, 0, 2 * Math.PI);
      cased(context, dot, "#111820", 1.5);
    }
  }
}

function outlinePixel(context, { place, scale }, { row, column }, ink) {
  const [x, y] = place(column, row);
  const side = Math.max(scale, 5);
  const path = new Path2D();
  path.rect(x - (side - scale) / 2, y - (side - scale) / 2, side, side);
  context.lineWidth = 3;
  context.strokeStyle = "#111820";
  context.stroke(path);
  context.lineWidth = 1.5;
  context.strokeStyle = ink;
  context.stroke(path);
}

function strokeColour(state) {
  return state.tool === "erase" ? "#111820" : FILL[state.kind];
}

function drawStroke(context, { place, scale }, { path, waiting }, state) {
  const line = new Path2D();
  path.forEach(([x, y], i) => (i ? line.lineTo(...place(x, y)) : line.moveTo(...place(x, y))));
  context.save();
  context.lineJoin = context.lineCap = "round";
  context.globalAlpha = waiting ? 0.35 : 0.55;
  if (state.tool === "lasso") {
    line.closePath();
    context.fillStyle = strokeColour(state);
    context.globalAlpha = 0.25;
    context.fill(line);
    context.globalAlpha = 1;
    cased(context, line, strokeColour(state));
  } else {
    if (path.length === 1) line.lineTo(...place(...path[0]));
    context.lineWidth = Math.max(4, state.brush * scale);
    context.strokeStyle = strokeColour(state);
    context.stroke(line);
  }
  context.restore();
}

function drawBrush(context, { place, scale }, [x, y], state) {
  const ring = new Path2D();
  ring.arc(...place(x, y), Math.max(3, (state.brush * scale) / 2), 0, 2 * Math.PI);
  cased(context, ring, strokeColour(state), 1.5);
}

function drawCursor(context, { place, scale }, cursor) {
  const [x, y] = place(cursor.column + 0.5, cursor.row + 0.5);
  const r = Math.max(5, scale / 2 + 2);
  const cross = new Path2D();
  for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
    cross.moveTo(x + dx * r, y + dy * r);
    cross.lineTo(x + dx * (r + 12), y + dy * (r + 12));
  }
  cased(context, cross);
}
