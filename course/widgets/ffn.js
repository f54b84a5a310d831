// Activation functions: one, another to compare it with, and their difference.

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

function curves({ name, other, x }, box) {
  const frame = chart({ x: [-4, 4], y: [-1, 4], box, xLabel: "x", yLabel: `${name} (dashed: ${other})` });
  const points = (of) => GRID.map((at) => [at, ACTIVATIONS[of](at)[0]]);
  frame.line(points(other), { colour: "residual", width: 2, dash: "5 4" });
  frame.line(points(name), { colour: "weights" });
  frame.dot(x, ACTIVATIONS[name](x)[0], { colour: "weights", r: 6 });
  return frame;
}

function gaps({ name, other, x }, box) {
  const top = largest(name, other) * 1.1 || 1;
  const yTicks = ticks(-top, top, 4);
  const frame = chart({ x: [-4, 4], y: [-top, top], box, yTicks, xLabel: "x", yLabel: "difference, enlarged" });
  frame.line(difference(name, other), { colour: "wrong" });
  frame.dot(x, ACTIVATIONS[name](x)[0] - ACTIVATIONS[other](x)[0], { colour: "wrong", r: 6 });
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
      const [each, left, down] = wide ? [0.5 * width, 0.5 * width, 0] : [width, 0, 255];
      return [down + 260, curves(now(), [40, 30, each - 62, 185]), gaps(now(), [left + 62, down + 30, each - 84, 185])];
    });
    const told = sentence();
    function draw(state) {
      first.set(state.name);
      second.set(state.other);
      place.set(state.x);
      figure.redraw();
      figure.describe(`Curves of two activation functions, and their difference. ${said(state)}`);
      told.say(said(state));
    }
    el.append(row(first, second), place, figure, told);
    draw(now());
  },
};
