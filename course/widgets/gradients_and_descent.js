// Descent on x²: the walk down the parabola, and x against the step.

const STEPS = 10;
const REACH = 5; // x from −5 to 5
const LIMIT = 4; // of the start

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

// The steps up to the first that leaves the frame.
function shown(path) {
  const out = path.findIndex((x) => Math.abs(x) > REACH);
  return out < 0 ? path : path.slice(0, out);
}

function valley(path, box, start, onStart) {
  const frame = chart({ x: [-REACH, REACH], y: [0, REACH ** 2], box, xTicks: [-4, -2, 0, 2, 4], xLabel: "x", yLabel: "f(x) = x²" });
  const grid = Array.from({ length: 81 }, (_, i) => -REACH + (i * 2 * REACH) / 80);
  frame.line(grid.map((x) => [x, x * x]), { colour: null, width: 1.5 });
  frame.line(path.map((x) => [x, x * x]), { colour: "one", width: 1.5 });
  for (const x of path) frame.dot(x, x * x, { colour: "one", r: 4 });
  const [x, y] = frame.at(start, start ** 2);
  const to = (at) => onStart(clamp(Math.round(10 * at) / 10, -LIMIT, LIMIT));
  frame.append(handle({
    x, y, colour: "two", label: "start, on the parabola", value: start, min: -LIMIT, max: LIMIT, said: number(start, 1),
    onMove: (px) => to(frame.of(px, 0)[0]), onStep: (right, up) => to(start + (right + up) / 10),
  }));
  frame.note(start, start ** 2, "start", { dx: start < 0 ? 14 : -14, dy: 4, "text-anchor": start < 0 ? "start" : "end", class: "course-strong" });
  return frame;
}

function overSteps(path, box) {
  const frame = chart({ x: [0, STEPS], y: [-REACH, REACH], box, xTicks: [0, 2, 4, 6, 8, 10], yTicks: [-4, -2, 0, 2, 4], xLabel: "step k", yLabel: "x after k steps" });
  frame.line(path.map((x, k) => [k, x]), { colour: "one", width: 1.5 });
  path.forEach((x, k) => frame.dot(k, x, { colour: "one", r: 4 }));
  return frame;
}

export default {
  render({ model, el }) {
    const put = connect(model, el, ["rate", "start"], draw);
    const now = () => ({ rate: model.get("rate"), start: model.get("start") });
    const rate = slider({ label: "learning rate η", min: 0.01, max: 1.2, step: 0.01, value: now().rate, onInput: (x) => put({ rate: x }) });
    const start = slider({
      label: "start", min: -LIMIT, max: LIMIT, colour: "two", step: 0.1, value: now().start, format: (x) => number(x, 1), onInput: (x) => put({ start: x }),
    });
    const figure = drawing("", (width) => {
      const path = shown(walk(now().start, now().rate));
      const wide = width >= 520;
      const half = wide ? width / 2 : width;
      const tall = wide ? 165 : 115;
      const [x, y] = wide ? [half, 0] : [0, tall + 78];
      return [
        y + tall + 75,
        valley(path, [30, 30, half - 46, tall], now().start, (start) => put({ start })),
        overSteps(path, [x + 30, y + 30, half - 46, tall]),
      ];
    });
    const told = sentence();
    function draw(state) {
      rate.set(state.rate);
      start.set(state.start);
      figure.redraw();
      figure.describe(`The steps on the parabola, and x against the step. ${said(state.start, state.rate)}`);
      told.say(said(state.start, state.rate));
    }
    el.append(figure, rate, start, told);
    draw(now());
  },
};
