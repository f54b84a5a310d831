// Three scores and a temperature: the probabilities, and the entropy as a curve over the temperature.

const NAMES = ["a", "b", "c"];
const LIMIT = 8;
const COLD = 0.1;
const HOT = 5;

// Exponentials of z/τ over their sum.
function softmaxAt(scores, tau) {
  return softmax(scores.map((s) => s / tau));
}

// −Σ p ln p in nats, with 0 ln 0 = 0.
function entropyOf(probs) {
  return -probs.reduce((sum, p) => sum + (p > 0 ? p * Math.log(p) : 0), 0);
}

// dℋ/dτ = Var_p(z) / τ³.
function slopeAt(scores, tau) {
  const probs = softmaxAt(scores, tau);
  const mean = probs.reduce((sum, p, i) => sum + p * scores[i], 0);
  return probs.reduce((sum, p, i) => sum + p * (scores[i] - mean) ** 2, 0) / tau ** 3;
}

function said(scores, tau) {
  const probs = softmaxAt(scores, tau);
  const list = (numbers, digits) => numbers.map((x) => x.toFixed(digits)).join(", ");
  return (
    `Scores ${list(scores, 1)} at temperature ${tau.toFixed(2)} give the probabilities ${list(probs, 3)}. ` +
    `Their entropy is ${entropyOf(probs).toFixed(3)} of at most ${Math.log(scores.length).toFixed(3)} nats.`
  );
}

function bars(scores, tau, box) {
  const [plain, probs] = [softmaxAt(scores, 1), softmaxAt(scores, tau)];
  const frame = chart({ x: [-0.6, 2.6], y: [0, 1], box, xTicks: [], yTicks: [0, 0.5, 1], yLabel: "probability (dashed: τ = 1)" });
  probs.forEach((p, i) => {
    frame.bar(i, p, { colour: "weights", width: 0.7 });
    const before = frame.bar(i, plain[i], { width: 0.78 });
    for (const [name, value] of Object.entries({ fill: "none", stroke: "currentColor", "stroke-dasharray": "3 3" })) before.setAttribute(name, value);
    const [x, y] = frame.at(i, Math.max(p, plain[i]));
    const bottom = frame.at(i, 0)[1];
    frame.append(text(x, y - 6, number(p, 3), { "text-anchor": "middle", class: "course-strong" }));
    frame.append(text(x, bottom + 17, `${NAMES[i]}: ${number(scores[i], 1)}`, { "text-anchor": "middle" }));
  });
  return frame;
}

function curve(scores, tau, box) {
  const most = Math.log(scores.length);
  const frame = chart({ x: [0, HOT], y: [0, 1.2], box, yTicks: [0, 0.5, 1], xLabel: "temperature τ", yLabel: "entropy ℋ in nats" });
  frame.line([[0, most], [HOT, most]], { colour: null, width: 1, dash: "4 4" });
  frame.note(0.08, most + 0.03, `ln 3 = ${number(most, 3)}`);
  const temperatures = Array.from({ length: 99 }, (_, k) => COLD + (k * (HOT - COLD)) / 98);
  frame.line(temperatures.map((t) => [t, entropyOf(softmaxAt(scores, t))]), { colour: "query" });
  frame.dot(tau, entropyOf(softmaxAt(scores, tau)), { colour: "weights", r: 6 });
  frame.note(HOT, 0.06, `slope at the dot ${number(slopeAt(scores, tau), 3)}`, { "text-anchor": "end" });
  return frame;
}

const MOVES = {
  "Add 1 to every score": (scores) => scores.map((s) => s + 1),
  "Double every score": (scores) => scores.map((s) => 2 * s),
  "Start again": () => [2, 1, 0],
};
const inRange = (scores) => scores.every((s) => Math.abs(s) <= LIMIT);

export default {
  render({ model, el }) {
    const put = connect(model, el, ["scores", "tau"], draw);
    const now = () => ({ scores: model.get("scores"), tau: model.get("tau") });
    const sliders = NAMES.map((name, i) =>
      slider({
        label: `score of ${name}`, min: -LIMIT, max: LIMIT, step: 0.1, value: now().scores[i], format: (x) => number(x, 1),
        onInput: (x) => put({ scores: now().scores.map((s, j) => (j === i ? x : s)) }),
      }),
    );
    const heat = slider({
      label: "temperature τ", min: COLD, max: HOT, step: 0.05, value: now().tau, colour: "weights", onInput: (tau) => put({ tau }),
    });
    const moves = buttons(...Object.entries(MOVES).map(([label, move]) => [label, () => put({ scores: move(now().scores) })]));
    const figure = drawing("", (width) => {
      const { scores, tau } = now();
      const wide = width >= 520;
      const [first, second] = wide ? [0.42 * width, 0.58 * width] : [width, width];
      const [x, y] = wide ? [first, 0] : [0, 235];
      return [
        y + 240,
        bars(scores, tau, [34, 30, first - 64, 165]),
        curve(scores, tau, [x + 34, y + 30, second - 44, 165]),
      ];
    });
    const told = sentence();
    function draw({ scores, tau }) {
      sliders.forEach((node, i) => node.set(scores[i]));
      heat.set(tau);
      Object.values(MOVES).forEach((move, i) => (moves.buttons[i].disabled = !inRange(move(scores))));
      figure.redraw();
      figure.describe(`Bars of three probabilities and the curve of their entropy over the temperature. ${said(scores, tau)}`);
      told.say(said(scores, tau));
    }
    el.append(...sliders, heat, moves, figure, told);
    draw(now());
  },
};
