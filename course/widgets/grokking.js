// Numbers that find their circle: the curves of a stored run, and its number vectors in the plane of one frequency.

const P = 113;
const DECAYS = ["0", "0.3", "0.5", "1", "2", "4"];
const LINES = [["training pairs", "two", "7 4"], ["test pairs", "one", undefined], ["Fourier measure", "three", "2 3"]];

const thousands = (x) => String(x).replace(/\B(?=(\d{3})+$)/g, ",");
const runOf = (state) => state.runs[`${state.decay}/${state.seed}`];

// Points of one moment, [x, y] from −127 to 127, one for each number.
function pointsOf(state) {
  const bytes = atob(runOf(state).at);
  const signed = (i) => ((bytes.charCodeAt(i) + 128) % 256) - 128;
  return Array.from({ length: P }, (_, a) => [0, 1].map((axis) => signed((state.frame * P + a) * 2 + axis)));
}

// The numbers in the order of their angles at the run's key frequency: neighbours on the circle, if there is one.
function orderOf(key) {
  return Array.from({ length: P }, (_, a) => a).sort((a, b) => ((key * a) % P) - ((key * b) % P));
}

function said(state) {
  const run = runOf(state);
  const [train, test, fourier] = run.now.map((values) => number(values[state.frame]));
  const grokked = run.grokked ? `it groks at step ${thousands(run.grokked)}` : `it has not grokked by step ${thousands(state.steps.at(-1))}`;
  return (
    `Weight decay ${state.decay}, seed ${state.seed}, step ${thousands(state.frames[state.frame])}: accuracy ${train} on training pairs, ` +
    `${test} on test pairs, Fourier measure ${fourier}; ${grokked}. The plane is that of frequency ${run.key}.`
  );
}

const place = (step) => Math.log10(Math.max(step, 1));

function plot(state, box, onMove) {
  const { steps, frames, frame } = state;
  const end = place(steps.at(-1));
  const axes = chart({ x: [0, end], y: [0, 1], box, xTicks: [0, 1, 2, 3, 4], yTicks: [0, 0.5, 1], xLabel: "step, power of ten", yLabel: "share" });
  LINES.forEach(([, colour, dash], k) => {
    axes.line(steps.map((step, i) => [place(step), runOf(state).curves[k][i] / 100]), { colour, dash, width: 2 });
  });
  const now = place(frames[frame]);
  axes.line([[now, 0], [now, 1]], { colour: "four", width: 1.5 });
  const [x, y] = axes.at(now, 0);
  const nearest = (at) => {
    const wanted = ((at - box[0]) / box[2]) * end;
    return frames.reduce((best, step, i) => (Math.abs(place(step) - wanted) < Math.abs(place(frames[best]) - wanted) ? i : best), 0);
  };
  axes.append(handle({ x, y, colour: "four", onMove: (at) => onMove(nearest(at)) }));
  return axes;
}

function circle(state, left, top, size) {
  const node = svg("g");
  const at = ([x, y]) => [left + size / 2 + (x * size) / 268, top + size / 2 - (y * size) / 268];
  const points = pointsOf(state).map(at);
  const order = orderOf(runOf(state).key);
  const path = [...order, order[0]].map((a) => points[a].map((c) => c.toFixed(1)).join(",")).join(" ");
  node.append(
    svg("rect", { x: left, y: top, width: size, height: size, fill: "none", class: "course-axis" }),
    svg("polyline", { points: path, fill: "none", stroke: "currentColor", "stroke-width": 1, opacity: 0.6 }),
    ...points.map(([cx, cy]) => svg("circle", { cx, cy, r: 2.6, fill: "var(--one)" })),
    text(left, top - 10, "neighbours joined"),
  );
  return node;
}

function legend(left, top) {
  return LINES.flatMap(([name, colour, dash], k) => [
    svg("line", { x1: left, x2: left + 22, y1: top + 20 * k, y2: top + 20 * k, stroke: `var(--${colour})`, "stroke-width": 2, "stroke-dasharray": dash }),
    text(left + 28, top + 20 * k + 4, name),
  ]);
}

export default {
  render({ model, el }) {
    const names = ["decay", "seed", "frame"];
    const put = connect(model, el, names, draw);
    const fixed = Object.fromEntries(["runs", "steps", "frames"].map((name) => [name, model.get(name)]));
    const now = () => ({ ...fixed, ...Object.fromEntries(names.map((name) => [name, model.get(name)])) });
    const last = fixed.frames.length - 1;
    const decay = slider({ label: "weight decay", min: 0, max: DECAYS.length - 1, step: 1, value: DECAYS.indexOf(now().decay), format: (i) => DECAYS[i], onInput: (i) => put({ decay: DECAYS[i] }) });
    const seed = slider({ label: "seed", min: 0, max: 2, step: 1, value: now().seed, format: String, onInput: (x) => put({ seed: x }) });
    const time = slider({ label: "step", min: 0, max: last, step: 1, value: now().frame, format: (i) => thousands(fixed.frames[i]), colour: "four", onInput: (x) => put({ frame: x }) });
    const figure = drawing("", (width) => {
      const wide = width >= 560;
      const size = wide ? Math.min(230, width * 0.38) : Math.min(240, width - 60);
      const across = wide ? width - size - 84 : width - 60;
      const box = [40, 30, across, 200];
      const below = [40, 300];
      const drawn = [plot(now(), box, (frame) => put({ frame })), ...legend(...below)];
      drawn.push(wide ? circle(now(), across + 70, 30, size) : circle(now(), 40, 390, size));
      return [wide ? 350 : 400 + size, ...drawn];
    });
    const told = sentence();
    function draw() {
      const state = now();
      decay.set(DECAYS.indexOf(state.decay));
      seed.set(state.seed);
      time.set(state.frame);
      figure.redraw();
      figure.describe(`Curves of a run, and its numbers in a plane. ${said(state)}`);
      told.say(said(state));
    }
    el.append(decay, seed, time, figure, told);
    draw();
  },
};
