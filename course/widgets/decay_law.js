// The window of a fit: a profile of attention over distance, and three curves fitted between two distances.

const CURVES = [["power law", "one"], ["exponential", "two"], ["log-normal", "three"]];
const LEAST = 7;

// Shares of the weight at distances low … high.
function shares(profile, low, high) {
  const cut = profile.slice(low, high + 1);
  const sum = cut.reduce((a, b) => a + b, 0);
  return cut.map((x) => x / sum);
}

const mean = (values, p) => values.reduce((sum, x, i) => sum + x * p[i], 0);

// What a curve keeps the means of, one row each.
function budgets(curve, distances) {
  const log = distances.map(Math.log);
  return curve === "exponential" ? [distances] : curve === "power law" ? [log] : [log, log.map((x) => x * x)];
}

// Logarithms of the shares ∝ e^(−η · f).
function logShares(eta, f) {
  const z = f[0].map((_, i) => -eta.reduce((sum, e, k) => sum + e * f[k][i], 0));
  const top = Math.max(...z);
  const norm = top + Math.log(z.reduce((sum, x) => sum + Math.exp(x - top), 0));
  return z.map((x) => x - norm);
}

// η for which the shares have the given means of one or two rows: Newton's method, halving steps until the convex loss falls.
function multipliers(budget, p) {
  const even = budget[0].map(() => 1 / budget[0].length);
  const scales = budget.map((row) => {
    const centre = mean(row, even);
    return [centre, Math.sqrt(mean(row.map((x) => (x - centre) ** 2), even))];
  });
  const f = budget.map((row, k) => row.map((x) => (x - scales[k][0]) / scales[k][1]));
  const target = f.map((row) => mean(row, p));
  const loss = (eta) => -mean(logShares(eta, f), p);
  let eta = f.map(() => 0);
  for (let n = 0; n < 60; n++) {
    const q = logShares(eta, f).map(Math.exp);
    const gap = f.map((row, k) => mean(row, q) - target[k]);
    const cov = f.map((a) => f.map((b) => mean(a.map((x, i) => x * b[i]), q) - mean(a, q) * mean(b, q)));
    let step = [gap[0] / cov[0][0]];
    if (f.length === 2) {
      const det = cov[0][0] * cov[1][1] - cov[0][1] ** 2;
      step = [(gap[0] * cov[1][1] - gap[1] * cov[0][1]) / det, (gap[1] * cov[0][0] - gap[0] * cov[0][1]) / det];
    }
    const start = loss(eta);
    let t = 1;
    while (t > 1e-9 && loss(eta.map((e, k) => e + t * step[k])) > start + 1e-13) t /= 2;
    eta = eta.map((e, k) => e + t * step[k]);
    if (Math.max(...step.map(Math.abs)) < 1e-10) break;
  }
  return eta.map((e, k) => e / scales[k][1]);
}

// The exponent, and of each curve its shares and its held-out gain.
function fits({ train, test, low, high }) {
  const distances = Array.from({ length: high - low + 1 }, (_, i) => low + i);
  const [p, q] = [shares(train, low, high), shares(test, low, high)];
  const gain = (log) => mean(log, q) + Math.log(distances.length);
  const found = { itself: gain(p.map((x) => Math.log(Math.max(x, 1e-12)))), curves: {} };
  for (const [name] of CURVES) {
    const f = budgets(name, distances);
    let eta = multipliers(f, p);
    if (name === "power law") found.exponent = eta[0];
    if (eta.length === 2 && eta[1] < 0) eta = [found.exponent, 0]; // one that bends up is no log-normal
    const log = logShares(eta, f);
    found.curves[name] = { log, gain: gain(log) };
  }
  return found;
}

function said(state) {
  const found = fits(state);
  const told = CURVES.map(([name]) => `${name} ${number(found.curves[name].gain, 3)}`).join(", ");
  return (
    `Fitted from distance ${state.low} to ${state.high}, the power law has exponent ${number(found.exponent)}. ` +
    `Held-out gain in nats: ${told}; the training profile itself ${number(found.itself, 3)}.`
  );
}

const logX = (axes) => axes === "log-log";
const logY = (axes) => axes !== "linear";

function picture(state, box, onMove) {
  const { test, low, high, axes } = state;
  const u = logX(axes) ? Math.log10 : (x) => x;
  const v = logY(axes) ? (y) => Math.log10(Math.max(y, 1e-12)) : (y) => 100 * y;
  const seen = test.slice(1);
  const [bottom, top] = [Math.min(...seen.map(v)), Math.max(...seen.map(v))];
  const y = logY(axes) ? [Math.floor(bottom * 2) / 2, Math.ceil(top * 2) / 2] : [0, top * 1.05];
  const frame = chart({
    x: [u(1), u(test.length - 1)], y, box,
    xTicks: logX(axes) ? [0, 1, 2] : ticks(1, test.length - 1), yTicks: logY(axes) ? ticks(...y, 4).filter(Number.isInteger) : ticks(...y, 4),
    format: (t) => (logY(axes) && t < 0 ? power(t) : logX(axes) && t >= 0 ? String(10 ** t) : String(t)),
    xLabel: "distance in tokens", yLabel: logY(axes) ? "mean weight" : "mean weight, %",
  });
  frame.line(seen.map((w, i) => [u(i + 1), v(w)]), { colour: "weights", width: 4 });
  const found = fits(state);
  const mass = test.slice(low, high + 1).reduce((a, b) => a + b, 0);
  CURVES.forEach(([name, colour], k) => {
    const points = found.curves[name].log.map((log, i) => [u(low + i), v(mass * Math.exp(log))]);
    frame.line(points.filter(([, b]) => b >= y[0] && b <= y[1]), { colour, width: 2, dash: [undefined, "7 4", "2 3"][k] });
  });
  for (const [name, at] of [["low", low], ["high", high]]) {
    frame.line([[u(at), y[0]], [u(at), y[1]]], { colour: "four", width: 1.5 });
    const [px, py] = frame.at(u(at), y[0]);
    frame.append(handle({ x: px, y: py, colour: "four", onMove: (moved) => {
      const share = Math.min(Math.max((moved - box[0]) / box[2], 0), 1);
      const distance = u(1) + share * (u(test.length - 1) - u(1));
      onMove(name, Math.round(logX(axes) ? 10 ** distance : distance));
    } }));
  }
  return frame;
}

// The names of the lines, in their colours and dashes; two rows where there is little room.
function legend(left, top, width) {
  const columns = width < 480 ? 2 : 4;
  return [["measured", "weights"], ...CURVES].flatMap(([name, colour], k) => {
    const [x, y] = [left + ((k % columns) * width) / columns, top + 20 * Math.floor(k / columns)];
    const dash = [undefined, undefined, "7 4", "2 3"][k];
    return [
      svg("line", { x1: x, x2: x + 20, y1: y, y2: y, stroke: `var(--${colour})`, "stroke-width": k ? 2 : 4, "stroke-dasharray": dash }),
      text(x + 26, y + 4, name),
    ];
  });
}

export default {
  render({ model, el }) {
    const names = ["low", "high", "axes"];
    const put = connect(model, el, names, draw);
    const [train, test] = [model.get("train"), model.get("test")];
    const now = () => ({ train, test, ...Object.fromEntries(names.map((name) => [name, model.get(name)])) });
    const last = test.length - 1;
    const move = (name, distance) => {
      const { low, high } = now();
      if (name === "low") put({ low: Math.min(Math.max(distance, 1), high - LEAST) });
      else put({ high: Math.max(Math.min(distance, last), low + LEAST) });
    };
    const slide = (name, label) => slider({ label, min: 1, max: last, step: 1, value: now()[name], format: String, colour: "four", onInput: (x) => (move(name, x), draw(now())) });
    const [from, to] = [slide("low", "from distance"), slide("high", "to distance")];
    const axes = choice({ label: "axes", options: ["log-log", "log-linear", "linear"].map((x) => [x, x]), value: now().axes, onChange: (x) => put({ axes: x }) });
    const figure = drawing("", (width) => [350, picture(now(), [52, 30, width - 70, 220], move), ...legend(8, 318, width - 16)]);
    const told = sentence();
    function draw() {
      const state = now();
      from.set(state.low);
      to.set(state.high);
      axes.set(state.axes);
      figure.redraw();
      figure.describe(`Mean attention weight over distance on ${state.axes} axes with three fitted curves. ${said(state)}`);
      told.say(said(state));
    }
    el.append(from, to, axes, figure, told);
    draw();
  },
};
