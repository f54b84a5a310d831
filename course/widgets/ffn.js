// A feed-forward network as a memory of four keys and values; activation functions: one, another to compare it with, and their difference.

const KEYS = [[2, 0.2], [0.4, 1.8], [-1.7, 0.5], [0.2, -1.8]];
const VALUES = [[1, 0.3], [-0.4, 1], [-1, -0.5], [0.9, -0.8]];
const REACH = 2; // of the input

const bell = (x) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);

// The probability that a standard normal number is below x, for |x| up to 4.
function below(x) {
  let [term, sum] = [x, x];
  for (let k = 3; Math.abs(term) > 1e-17; k += 2) sum += term *= (x * x) / k;
  return 0.5 + bell(x) * sum;
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const scaled = (k) => (x) => [x * sigmoid(k * x), sigmoid(k * x) * (1 + k * x * (1 - sigmoid(k * x)))];

function byTanh(x) {
  const [c, t] = [Math.sqrt(2 / Math.PI), Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))];
  return [0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x)];
}

// Value and slope at x.
const ACTIVATIONS = {
  ReLU: (x) => [Math.max(0, x), x > 0 ? 1 : 0],
  GELU: (x) => [x * below(x), below(x) + x * bell(x)],
  "GELU by tanh": byTanh,
  "GELU by sigmoid": scaled(1.702),
  SiLU: scaled(1),
};
const GRID = Array.from({ length: 801 }, (_, i) => (i - 400) / 100);

const difference = (name, other) => GRID.map((x) => [x, ACTIVATIONS[name](x)[0] - ACTIVATIONS[other](x)[0]]);
const largest = (name, other) => Math.max(...difference(name, other).map(([, gap]) => Math.abs(gap)));

function said({ name, other, x }) {
  const [value, slope] = ACTIVATIONS[name](x);
  const compared =
    name === other
      ? "It is compared with itself."
      : `${other} has ${number(ACTIVATIONS[other](x)[0], 4)} there. Between −4 and 4 they differ by at most ${number(largest(name, other), 4)}.`;
  return `${name} at x = ${number(x)}: value ${number(value, 4)}, slope ${number(slope, 4)}. ${compared}`;
}

// How strongly each key answers to x, f(k · x), and the sum of the values in these strengths.
function recall([a, b], f) {
  const strengths = KEYS.map(([p, q]) => f(p * a + q * b)[0]);
  return { strengths, output: [0, 1].map((e) => strengths.reduce((sum, m, i) => sum + m * VALUES[i][e], 0)) };
}

// The input among the keys, a bar for each key's answer, and the output as the values laid end to end.
function memory(point, name, width, onMove) {
  const { strengths, output } = recall(point, ACTIVATIONS[name]);
  const narrow = width < 520;
  const side = Math.min(200, narrow ? width / 2 - 24 : width / 3 - 40);
  const [ink, strong] = [["two", "three"], { class: "course-strong" }];
  const quiet = { xTicks: [], yTicks: [], axis: false };
  const keys = chart({ x: [-REACH - 0.2, REACH + 0.2], y: [-REACH - 0.2, REACH + 0.2], box: [4, 30, side, side], yLabel: "input x and keys", ...quiet });
  KEYS.forEach((k, i) => {
    keys.arrow([0, 0], k, { colour: ink[0], width: 1.5 + Math.min(Math.abs(strengths[i]), 4) });
    keys.note(...k, `k${i + 1}`, { dx: 5, dy: -5, ...strong });
  });
  const to = (place) => onMove(place.map((c) => clamp(Math.round(10 * c) / 10, -REACH, REACH)));
  const [px, py] = keys.at(...point);
  keys.append(handle({
    x: px, y: py, colour: "one", label: "input x", value: point[0], min: -REACH, max: REACH, said: `(${point.map((c) => number(c, 1)).join(", ")})`,
    onMove: (...at) => to(keys.of(...at)), onStep: (right, up) => to([point[0] + right / 10, point[1] + up / 10]),
  }));
  const [left, top, room] = narrow ? [0, side + 66, width] : [side + 40, 30, side];
  const bars = svg("g", {}, text(left, top - 10, `each key's answer, f(k · x)`));
  strengths.forEach((m, i) => {
    const y = top + 8 + i * 34;
    const zero = left + 30 + 0.12 * (room - 90);
    const long = (Math.min(Math.abs(m), 5) / 5) * 0.88 * (room - 90);
    bars.append(text(left, y + 15, `k${i + 1}`, strong), svg("rect", { x: m < 0 ? zero - long : zero, y, width: Math.max(long, 1), height: 20, rx: 3, fill: "var(--two)" }), text(zero + (m < 0 ? 0 : long) + 6, y + 15, number(m)));
  });
  const steps = strengths.map((m, i) => VALUES[i].map((v) => m * v));
  const points = steps.reduce((ends, [a, b]) => [...ends, [ends.at(-1)[0] + a, ends.at(-1)[1] + b]], [[0, 0]]);
  const most = Math.max(2, ...points.flat().map(Math.abs)) * 1.15;
  const sum = chart({ x: [-most, most], y: [-most, most], box: [narrow ? side + 36 : 2 * side + 76, 30, side, side], yLabel: "output: values, added", ...quiet });
  steps.forEach((step, i) => {
    if (Math.hypot(...step) < 0.06 * most) return;
    sum.arrow(points[i], points[i + 1], { colour: ink[1] });
    sum.note(...points[i].map((c, e) => (c + points[i + 1][e]) / 2), `v${i + 1}`, { dx: 5, dy: -4 });
  });
  sum.arrow([0, 0], output, { colour: "one", width: 3 });
  return [narrow ? top + 146 : side + 46, keys, bars, sum];
}

function remembered(point, name) {
  const { strengths, output } = recall(point, ACTIVATIONS[name]);
  const list = (numbers, digits) => numbers.map((c) => number(c, digits)).join(", ");
  return `With ${name} the input (${list(point, 1)}) wakes the four keys by ${list(strengths)}. The output, the sum of the values, is (${list(output)}).`;
}

function curves({ name, other, x }, box, onMove) {
  const frame = chart({ x: [-4, 4], y: [-1, 4], box, xLabel: "x", yLabel: `${name} (dashed: ${other})` });
  const points = (of) => GRID.map((at) => [at, ACTIVATIONS[of](at)[0]]);
  frame.line(points(other), { colour: null, width: 1.5, dash: "5 4" });
  frame.line(points(name), { colour: "one" });
  const [px, py] = frame.at(x, ACTIVATIONS[name](x)[0]);
  const to = (at) => onMove(Number(clamp(at, -4, 4).toFixed(2)));
  frame.append(handle({
    x: px, y: py, colour: "one", label: "x, on the curve", value: x, min: -4, max: 4, said: number(x),
    onMove: (at) => to(frame.of(at, 0)[0]), onStep: (right, up) => to(x + (right + up) / 100),
  }));
  return frame;
}

function gaps({ name, other, x }, box) {
  const top = largest(name, other) * 1.1 || 1;
  const yTicks = ticks(-top, top, 4);
  const frame = chart({ x: [-4, 4], y: [-top, top], box, yTicks, xLabel: "x", yLabel: "difference, enlarged" });
  frame.line(difference(name, other), { colour: "two" });
  frame.dot(x, ACTIVATIONS[name](x)[0] - ACTIVATIONS[other](x)[0], { colour: "two" });
  return frame;
}

export default {
  render({ model, el }) {
    const names = ["name", "other", "x"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const options = Object.keys(ACTIVATIONS).map((name) => [name, name]);
    const first = choice({ label: "function", options, value: now().name, onChange: (name) => put({ name }) });
    const second = choice({ label: "compared with", options, value: now().other, onChange: (other) => put({ other }) });
    const place = slider({ label: "x", min: -4, max: 4, step: 0.01, value: now().x, onInput: (x) => put({ x }) });
    const figure = drawing("", (width) => {
      const wide = width >= 520;
      const tall = wide ? 185 : 115;
      const [each, left, down] = wide ? [0.5 * width, 0.5 * width, 0] : [width, 0, tall + 75];
      return [down + tall + 75, curves(now(), [40, 30, each - 62, tall], (x) => put({ x })), gaps(now(), [left + 62, down + 30, each - 84, tall])];
    });
    let point = [1.2, 1]; // the input of the memory
    const store = drawing("", (width) => memory(point, now().name, width, (moved) => {
      point = moved;
      show();
    }));
    const recalled = element("p", { "aria-live": "polite" });
    const show = () => {
      store.redraw();
      recalled.textContent = remembered(point, now().name);
      store.describe(`Keys and an input as arrows and a dot, bars of the keys' answers, and the output as a sum of values. ${recalled.textContent}`);
    };
    const told = sentence();
    function draw(state) {
      first.set(state.name);
      second.set(state.other);
      place.set(state.x);
      show();
      figure.redraw();
      figure.describe(`Curves of two activation functions, and their difference. ${said(state)}`);
      told.say(said(state));
    }
    el.append(part(store, recalled, first), part(figure, second, place, told));
    draw(now());
  },
};
