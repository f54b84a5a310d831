// A race in a bowl: plain descent, the heavy ball and Adam from one start.

const STEPS = 60;
const KAPPA = 25;
const START = [-1.2, 0.5];
const RUNNERS = [["SGD", "plain descent", "one"], ["heavy ball", "heavy ball", "two"], ["Adam", "Adam", "three"]];

// The matrix of the bowl wAwᵀ/2, its flat axis turned by `degrees`.
function bowl(degrees) {
  const [c, s] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  return [[c * c + KAPPA * s * s, (1 - KAPPA) * c * s], [(1 - KAPPA) * c * s, s * s + KAPPA * c * c]];
}

const slope = (A, w) => [0, 1].map((i) => w[0] * A[0][i] + w[1] * A[1][i]);
const height = (A, w) => slope(A, w).reduce((sum, x, i) => sum + (x * w[i]) / 2, 0);

// Each rule as one step for one parameter: new [w, m, v] from the gradient g in step t.
function stepOf(rule, rate, beta) {
  if (rule === "SGD") return (w, g) => [w - rate * g, 0, 0];
  if (rule === "heavy ball") return (w, g, m) => [w - rate * (beta * m + g), beta * m + g, 0];
  return (w, g, m, v, t) => {
    const [mean, square] = [beta * m + (1 - beta) * g, 0.999 * v + 0.001 * g * g];
    const root = Math.sqrt(square / (1 - 0.999 ** t));
    return [w - (rate * (mean / (1 - beta ** t))) / (root + 1e-8), mean, square];
  };
}

function pathOf(rule, { angle, rate, beta, adam_rate }) {
  const [A, step] = [bowl(angle), stepOf(rule, rule === "Adam" ? adam_rate : rate, beta)];
  let now = START.map((w) => [w, 0, 0]);
  const path = [START];
  for (let t = 1; t <= STEPS; t++) {
    const g = slope(A, path[t - 1]);
    now = now.map(([w, m, v], i) => step(w, g[i], m, v, t));
    path.push(now.map(([w]) => w));
  }
  return path;
}

// The loss divided by its start, at each point of a path.
function lossesOf(path, angle) {
  const A = bowl(angle);
  return path.map((w) => height(A, w) / height(A, path[0]));
}

function ended(share) {
  return share <= 1 ? `is at ${scientific(Math.max(share, 1e-30))} of its first loss` : "has flown apart";
}

function said(state) {
  const [plain, heavy, adam] = RUNNERS.map(([rule]) => ended(lossesOf(pathOf(rule, state), state.angle)[STEPS]));
  return (
    `A bowl with curvatures 1 and ${KAPPA}, turned by ${state.angle}°. After ${STEPS} steps ` +
    `plain descent with rate ${number(state.rate, 3)} ${plain}, the heavy ball with β = ${number(state.beta)} ${heavy}, ` +
    `Adam with rate ${number(state.adam_rate)} ${adam}.`
  );
}

// Contour lines: three ellipses of equal height that fit into the frame at any angle.
function contours(degrees) {
  const turn = (degrees * Math.PI) / 180;
  return [0.1, 0.4, 1.1].map((level) =>
    Array.from({ length: 73 }, (_, k) => {
      const [u, v] = [Math.sqrt(2 * level) * Math.cos((k * Math.PI) / 36), Math.sqrt((2 * level) / KAPPA) * Math.sin((k * Math.PI) / 36)];
      return [u * Math.cos(turn) - v * Math.sin(turn), u * Math.sin(turn) + v * Math.cos(turn)];
    }),
  );
}

const REACH = [2, 1.5];
const inFrame = (w) => w.every((x, i) => Math.abs(x) <= REACH[i]);

// The steps up to the first that leaves the frame.
function shown(path) {
  const out = path.findIndex((w) => !inFrame(w));
  return out < 0 ? path : path.slice(0, out);
}

function plane(state, step, box) {
  const frame = chart({ x: [-2, 2], y: [-1.5, 1.5], box, xTicks: [-2, -1, 0, 1, 2], yTicks: [-1, 0, 1], xLabel: "w₁", yLabel: "w₂" });
  for (const ellipse of contours(state.angle)) frame.line(ellipse, { colour: null, width: 0.7 });
  for (const [rule, , colour] of RUNNERS) {
    const all = shown(pathOf(rule, state));
    const path = all.slice(0, step + 1);
    frame.line(all, { colour, width: 1 }).setAttribute("stroke-opacity", 0.25);
    frame.line(path, { colour, width: 2 });
    frame.dot(...path[path.length - 1], { colour, r: 6 });
  }
  return frame;
}

function overSteps(state, step, box) {
  const frame = chart({ x: [0, STEPS], y: [-10, 2], box, yTicks: [-8, -4, 0], yFormat: (t) => power(t), xLabel: "step", yLabel: "loss / first loss" });
  frame.line([[step, -10], [step, 2]], { colour: null, width: 1 });
  RUNNERS.forEach(([rule, name, colour], k) => {
    const powers = lossesOf(pathOf(rule, state), state.angle).map((x, t) => [t, Math.log10(Math.max(x, 1e-30))]);
    const inside = powers.filter(([, p]) => p <= 2).map(([t, p]) => [t, Math.max(p, -10)]);
    frame.line(inside, { colour, dash: [undefined, "7 3", "2 3"][k] });
    if (inside[step]) frame.dot(...inside[step], { colour });
    frame.append(text(box[0] + 8, box[1] + box[3] - 40 + 16 * k, name, { style: `fill: var(--${colour})`, class: "course-strong" }));
  });
  return frame;
}

export default {
  render({ model, el }) {
    const names = ["angle", "rate", "beta", "adam_rate"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const { angle, rate, beta, adam_rate } = now();
    const sliders = {
      angle: slider({ label: "angle of the bowl", min: 0, max: 90, step: 1, value: angle, format: (x) => `${x}°`, onInput: (x) => put({ angle: x }) }),
      rate: slider({ label: "rate η of descent and heavy ball", min: 0.002, max: 0.1, step: 0.001, value: rate, format: (x) => number(x, 3), colour: "one", onInput: (x) => put({ rate: x }) }),
      beta: slider({ label: "β of heavy ball and Adam", min: 0, max: 0.98, step: 0.01, value: beta, colour: "two", onInput: (x) => put({ beta: x }) }),
      adam_rate: slider({ label: "rate η of Adam", min: 0.01, max: 0.5, step: 0.01, value: adam_rate, colour: "three", onInput: (x) => put({ adam_rate: x }) }),
    };
    let step = STEPS; // how far the race is shown
    const race = player({ label: "step", last: STEPS, value: step, onInput: (t) => {
      step = t;
      race.set(t);
      figure.redraw();
    } });
    const figure = drawing("", (width) => {
      const wide = width >= 560;
      const half = wide ? width / 2 : width;
      const tall = wide ? 205 : 125;
      const [x, y] = wide ? [half, 0] : [0, tall + 74];
      return [y + tall + 75, plane(now(), step, [30, 30, half - 46, tall]), overSteps(now(), step, [x + 40, y + 30, half - 56, tall])];
    });
    const told = sentence();
    function draw(state) {
      for (const name of names) sliders[name].set(state[name]);
      figure.redraw();
      figure.describe(`Three paths in a bowl, and the loss against the step. ${said(state)}`);
      told.say(said(state));
    }
    el.append(figure, race, ...Object.values(sliders), told);
    draw(now());
  },
};
