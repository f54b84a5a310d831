// Phase structure: the share of a power law's weight in each octave of distances, as the exponent and the length move.

const TOP = 4; // in even shares
const LEAST = 2;
const MOST = 60;

// Sum of r^−γ over the distances from 2^k to 2^(k + 1) − 1: by the area under the curve from 64 on, with Euler and Maclaurin's correction.
function octave(gamma, k) {
  const [a, b] = [2 ** k, 2 ** (k + 1)];
  if (k < 6) return Array.from({ length: a }, (_, i) => (a + i) ** -gamma).reduce((x, y) => x + y);
  const [from, to] = [a - 0.5, b - 0.5];
  const power = (1 - gamma) * Math.log(to / from);
  const area = from ** (1 - gamma) * (Math.abs(power) < 1e-12 ? Math.log(to / from) : Math.expm1(power) / (1 - gamma));
  return area + (gamma / 24) * (to ** (-gamma - 1) - from ** (-gamma - 1));
}

function shares({ gamma, octaves }) {
  const weights = Array.from({ length: octaves }, (_, k) => octave(gamma, k));
  const sum = weights.reduce((x, y) => x + y);
  return weights.map((w) => w / sum);
}

// How much of octave k is in the near half: 1, 0, or a half for the one in the middle.
const nearness = (k, octaves) => Math.min(Math.max(octaves / 2 - k, 0), 1);

const near = (state) => shares(state).reduce((sum, p, k) => sum + p * nearness(k, state.octaves), 0);

// The exponent for which the last octave has `height` even shares: it falls as γ grows.
function exponent(height, octaves) {
  let [low, high] = [0, 2];
  for (let n = 0; n < 40; n++) {
    const middle = (low + high) / 2;
    if (octaves * shares({ gamma: middle, octaves })[octaves - 1] > height) low = middle;
    else high = middle;
  }
  return Math.round(50 * (low + high)) / 100;
}

function said(state) {
  const share = near(state);
  const logN = Math.log(2 ** state.octaves - 1);
  const u = (state.gamma - 1) * logN;
  const told = share > 0.1 && share < 0.9 ? "Neither half has nine tenths." : `The ${share > 0.5 ? "near" : "far"} half has nine tenths.`;
  return (
    `γ = ${number(state.gamma)}, ${state.octaves} octaves of distances (ln N = ${number(logN, 1)}): the near half has ` +
    `${number(100 * share, 1)}% of the weight (u = ${number(u, 1)}). ${told}`
  );
}

function draw(state, box, onMove) {
  const { octaves } = state;
  const frame = chart({
    x: [0, MOST], y: [0, TOP], box, xTicks: [0, 10, 20, 30, 40, 50, 60], yTicks: [0, 1, 2, 3, 4],
    format: String, xLabel: "octave of the distance", yLabel: "weight, in even shares",
  });
  const found = shares(state);
  found.forEach((p, k) => {
    const height = Math.min(octaves * p, TOP);
    const colour = nearness(k, octaves) === 1 ? "one" : nearness(k, octaves) === 0 ? "two" : "three";
    frame.bar(k + 0.5, height, { colour, width: 0.8 });
  });
  frame.line([[0, 1], [octaves, 1]], { colour: null, width: 1.5, dash: "5 4" });
  const [x, y] = frame.at(octaves - 0.5, Math.min(octaves * found[octaves - 1], TOP));
  const [left, top, width, height] = box;
  frame.append(handle({ x, y, colour: "four", onMove: (px, py) => {
    const many = Math.min(Math.max(Math.round(((px - left) / width) * MOST + 0.5), LEAST), MOST);
    const even = Math.min(Math.max((1 - (py - top) / height) * TOP, 0.001), TOP);
    onMove({ octaves: many, gamma: exponent(even, many) });
  } }));
  return frame;
}

export default {
  render({ model, el }) {
    const names = ["gamma", "octaves"];
    const put = connect(model, el, names, show);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const steep = slider({ label: "exponent γ", min: 0, max: 2, step: 0.01, value: now().gamma, colour: "four", onInput: (gamma) => put({ gamma }) });
    const long = slider({ label: "octaves", min: LEAST, max: MOST, step: 1, value: now().octaves, format: String, colour: "four", onInput: (octaves) => put({ octaves }) });
    const figure = drawing("", (width) => [
      320, draw(now(), [36, 34, width - 52, 200], put),
      svg("rect", { x: 36, y: 292, width: 14, height: 12, fill: "var(--one)" }), text(56, 303, "near half"),
      svg("rect", { x: 136, y: 292, width: 14, height: 12, fill: "var(--two)" }), text(156, 303, "far half"),
    ]);
    const told = sentence();
    function show() {
      const state = now();
      steep.set(state.gamma);
      long.set(state.octaves);
      figure.redraw();
      figure.describe(`Bars, one for each octave of distances, with its weight in even shares. ${said(state)}`);
      told.say(said(state));
    }
    el.append(steep, long, figure, told);
    show();
  },
};
