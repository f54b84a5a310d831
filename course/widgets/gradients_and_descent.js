const STEPS = 10;
const REACH = 5; // x from −5 to 5

// x_{k+1} = x_k − η · 2 x_k, for k = 0 … STEPS − 1.
function walk(start, rate) {
  const path = [start];
  for (let k = 0; k < STEPS; k++) path.push(path[k] - rate * 2 * path[k]);
  return path;
}

function courseOf(factor) {
  const size = Number(Math.abs(factor).toFixed(9));
  if (size > 1) return "jumps from side to side and flies apart";
  if (size === 1) return "jumps from side to side for ever";
  if (size === 0) return "arrives in one step";
  return factor > 0 ? "comes down on one side" : "jumps from side to side and comes down";
}

function said(start, rate) {
  const factor = 1 - 2 * rate;
  return (
    `Descent on x² from ${start.toFixed(1)} with learning rate ${rate.toFixed(2)}: each step multiplies x by ${factor.toFixed(2)}, ` +
    `so it ${courseOf(factor)}. After ${STEPS} steps x is ${walk(start, rate)[STEPS].toFixed(3)}.`
  );
}

// The points of a path inside a frame; what leaves it ends at its edge.
function inside(points, left, right, top, bottom) {
  const shown = points.findIndex(([x, y]) => x < left || x > right || y < top || y > bottom);
  return shown < 0 ? points : points.slice(0, shown);
}

function trace(points, colour) {
  const group = svg("g");
  group.append(svg("polyline", { points: points.map((p) => p.join(",")).join(" "), fill: "none", stroke: colour, "stroke-width": 1.5 }));
  for (const [cx, cy] of points) group.append(svg("circle", { cx, cy, r: 4, fill: colour }));
  return group;
}

function valley(start, rate) {
  const group = svg("g");
  const [left, width, bottom, height] = [10, 270, 205, 175];
  const at = (x) => [left + ((x + REACH) / (2 * REACH)) * width, bottom - (x * x / REACH ** 2) * height];
  const curve = Array.from({ length: 81 }, (_, i) => at(-REACH + (i * 2 * REACH) / 80).join(","));
  group.append(svg("polyline", { points: curve.join(" "), fill: "none", stroke: "currentColor", "stroke-opacity": 0.6, "stroke-width": 2 }));
  group.append(trace(inside(walk(start, rate).map(at), left, left + width, bottom - height, bottom), "var(--query)"));
  for (const x of [-4, -2, 0, 2, 4]) group.append(text(at(x)[0], bottom + 17, x, { "text-anchor": "middle" }));
  group.append(text(left, 16, "f(x) = x²"));
  return group;
}

function steps(start, rate) {
  const group = svg("g");
  const [left, width, middle, half] = [325, 260, 118, 87];
  const at = (x, k) => [left + (k / STEPS) * width, middle - (x / REACH) * half];
  for (const x of [-4, -2, 0, 2, 4]) {
    const y = at(x, 0)[1];
    group.append(svg("line", { x1: left, x2: left + width, y1: y, y2: y, stroke: "currentColor", "stroke-opacity": x ? 0.2 : 0.6 }));
    group.append(text(left - 8, y + 4, x, { "text-anchor": "end" }));
  }
  group.append(trace(inside(walk(start, rate).map(at), left, left + width, middle - half, middle + half), "var(--weights)"));
  for (const k of [0, 5, 10]) group.append(text(at(0, k)[0], 222, k, { "text-anchor": "middle" }));
  group.append(text(left, 16, "x against the step k"));
  return group;
}

export default {
  render({ model, el }) {
    el.classList.add("course-widget");
    const drawing = picture(600, 230, "");
    const line = element("p", { class: "course-said", "aria-live": "polite" });
    const change = (name, value) => {
      model.set(name, value);
      model.save_changes();
      draw();
    };
    const rate = slider({
      label: "learning rate η", min: 0.01, max: 1.2, step: 0.01, value: model.get("rate"),
      onInput: (x) => change("rate", x),
    });
    const start = slider({
      label: "start x₀", min: -4, max: 4, step: 0.1, value: model.get("start"),
      format: (x) => x.toFixed(1), onInput: (x) => change("start", x),
    });
    function draw() {
      const [from, eta] = [model.get("start"), model.get("rate")];
      rate.set(eta);
      start.set(from);
      drawing.replaceChildren(valley(from, eta), steps(from, eta));
      drawing.describe(said(from, eta));
      line.textContent = said(from, eta);
    }
    model.on("change:rate", draw);
    model.on("change:start", draw);
    el.append(rate, start, drawing, line);
    draw();
  },
};
