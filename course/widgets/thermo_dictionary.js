// Levels and who sits on them: the weight of a power law on each octave of distances, and its heat capacity over γ.

const SIZES = [10, 100, 1000, 10000];
const COLDEST = 4;
const logs = {};

function energies(N) {
  return (logs[N] ??= Array.from({ length: N }, (_, i) => Math.log(i + 1)));
}

// The weights of all distances, and mean, variance and third cumulant of ln r.
function law(gamma, N) {
  const x = energies(N);
  const w = x.map((e) => Math.exp(-gamma * e));
  const Z = w.reduce((a, b) => a + b, 0);
  const mean = w.reduce((sum, p, i) => sum + p * x[i], 0) / Z;
  const about = (k) => w.reduce((sum, p, i) => sum + p * (x[i] - mean) ** k, 0) / Z;
  return { weights: w.map((p) => p / Z), log: Math.log(Z), mean, variance: about(2), third: about(3) };
}

// The γ at which γ² Var is largest, where 2 Var is γ times the third cumulant.
function peak(N) {
  let [low, high] = [0.5, 5];
  for (let n = 0; n < 25; n++) {
    const middle = (low + high) / 2;
    const { variance, third } = law(middle, N);
    if (2 * variance > middle * third) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

function values(gamma, N) {
  const { log, mean, variance } = law(gamma, N);
  return { mean, spread: Math.sqrt(variance), entropy: log + gamma * mean, heat: gamma ** 2 * variance, peak: curve(N).peak };
}

// The heat capacity at all exponents, made once for each N.
const curves = {};
function curve(N) {
  if (curves[N]) return curves[N];
  const points = Array.from({ length: 81 }, (_, k) => (k * COLDEST) / 80).map((g) => [g, g ** 2 * law(g, N).variance]);
  const at = peak(N);
  points.push([at, at ** 2 * law(at, N).variance]);
  points.sort((a, b) => a[0] - b[0]);
  return (curves[N] = { points, peak: at });
}

function said({ gamma, N }) {
  const v = values(gamma, N);
  return (
    `At γ = ${number(gamma)} with ${N} distances ln r has mean ${number(v.mean)} and standard deviation ${number(v.spread)}; ` +
    `entropy ${number(v.entropy)}, heat capacity ${number(v.heat)}. The heat capacity is largest at γ = ${number(v.peak)}.`
  );
}

// The share of the weight on each octave: [first distance, last, share].
function octaves(gamma, N) {
  const { weights } = law(gamma, N);
  const found = [];
  for (let first = 1; first <= N; first *= 2) {
    const last = Math.min(2 * first - 1, N);
    found.push([first, last, weights.slice(first - 1, last).reduce((a, b) => a + b, 0)]);
  }
  return found;
}

// The levels: energy upwards, one bar for each octave, the mean as a stroke with a standard deviation to both sides.
function levels({ gamma, N }, box) {
  const rows = octaves(gamma, N);
  const top = Math.log(2) * rows.length;
  const frame = chart({ x: [0, 1], y: [0, top], box, xLabel: "share of the weight", yLabel: "energy ln r", xTicks: [0, 0.5, 1], yTicks: ticks(0, top, 5) });
  const [left, , width] = box;
  for (const [first, last, share] of rows) {
    const [, high] = frame.at(0, Math.log(first) + Math.log(2));
    const [, low] = frame.at(0, Math.log(first));
    frame.append(svg("rect", { x: left, y: high + 1.5, width: Math.max(share * width, 1), height: Math.max(low - high - 3, 1), rx: 2, fill: "var(--weights)" }));
    const name = first === last ? `r = ${first}` : `${first} to ${last}`;
    if (low - high > 13) frame.append(text(left + share * width + 6, (low + high) / 2 + 4, name, { class: "course-small" }));
  }
  const v = values(gamma, N);
  frame.line([[0.94, v.mean], [1.02, v.mean]], { colour: "two", width: 4 });
  frame.line([[0.98, Math.max(v.mean - v.spread, 0)], [0.98, Math.min(v.mean + v.spread, top)]], { colour: "two", width: 4 });
  return frame;
}

function thermometer({ gamma, N }, box, onMove) {
  const { points } = curve(N);
  const top = 1.1 * Math.max(...points.map(([, c]) => c));
  const frame = chart({ x: [0, COLDEST], y: [0, top], box, xLabel: "exponent γ: hot at the left, cold at the right", yLabel: "heat capacity", xTicks: [0, 1, 2, 3, 4] });
  frame.line(points, { colour: "one" });
  const heat = gamma ** 2 * law(gamma, N).variance;
  frame.line([[gamma, 0], [gamma, heat]], { colour: "two", width: 1.5, dash: "4 4" });
  const [x, y] = frame.at(gamma, heat);
  frame.append(handle({ x, y, colour: "two", onMove: (moved) => {
    const share = Math.min(Math.max((moved - box[0]) / box[2], 0), 1);
    onMove(Math.round(share * COLDEST * 20) / 20);
  } }));
  return frame;
}

export default {
  render({ model, el }) {
    const put = connect(model, el, ["gamma", "N"], draw);
    const now = () => ({ gamma: model.get("gamma"), N: model.get("N") });
    const knob = slider({ label: "exponent γ", min: 0, max: COLDEST, step: 0.05, value: now().gamma, colour: "two", onInput: (gamma) => put({ gamma }) });
    const size = choice({ label: "longest distance", options: SIZES.map((N) => [String(N), String(N)]), value: String(now().N), onChange: (N) => put({ N: Number(N) }) });
    const figure = drawing("", (width) => {
      const narrow = width < 560;
      const each = narrow ? width - 60 : width / 2 - 62;
      const second = narrow ? [40, 345, each, 190] : [width / 2 + 40, 30, each, 230];
      return [narrow ? 590 : 310, levels(now(), [40, 30, each, 230]), thermometer(now(), second, (gamma) => put({ gamma }))];
    });
    const told = sentence();
    function draw() {
      const state = now();
      knob.set(state.gamma);
      size.set(String(state.N));
      figure.redraw();
      figure.describe(`Bars with the weight on each octave of distances, and a curve of the heat capacity over the exponent. ${said(state)}`);
      told.say(said(state));
    }
    el.append(knob, size, figure, told);
    draw();
  },
};
