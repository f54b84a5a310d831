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

// The score that gives entry i the probability p while the others stay, in tenths.
function scoreFor(p, i, scores, tau) {
  const others = scores.filter((_, j) => j !== i);
  const top = Math.max(...others);
  const rest = top + tau * Math.log(others.reduce((sum, s) => sum + Math.exp((s - top) / tau), 0));
  const share = clamp(p, 1e-6, 1 - 1e-6);
  return clamp(Math.round(10 * (rest + tau * Math.log(share / (1 - share)))) / 10, -LIMIT, LIMIT);
}

function bars(scores, tau, box, onScore) {
  const [plain, probs] = [softmaxAt(scores, 1), softmaxAt(scores, tau)];
  const frame = chart({ x: [-0.6, 2.6], y: [0, 1], box, xTicks: [], yTicks: [0, 0.5, 1], yLabel: box[2] < 200 ? "dashed: τ = 1" : "probability (dashed: τ = 1)" });
  probs.forEach((p, i) => {
    frame.bar(i, p, { colour: "one", width: 0.7 });
    const before = frame.bar(i, plain[i], { width: 0.78 });
    for (const [name, value] of Object.entries({ fill: "none", stroke: "currentColor", "stroke-dasharray": "3 3" })) before.setAttribute(name, value);
    const [x, y] = frame.at(i, Math.max(p, plain[i]));
    const bottom = frame.at(i, 0)[1];
    frame.append(text(x, y - 15, number(p, box[2] < 160 ? 2 : 3), { "text-anchor": "middle", class: "course-strong" }));
    frame.append(text(x, bottom + 17, box[2] < 160 ? NAMES[i] : `${NAMES[i]}: ${number(scores[i], 1)}`, { "text-anchor": "middle" }));
    frame.append(handle({
      x, y: frame.at(i, p)[1], colour: "one", label: `top of bar ${NAMES[i]}`, value: scores[i], min: -LIMIT, max: LIMIT, said: `probability ${number(p, 3)}`,
      onMove: (_, py) => onScore(i, scoreFor(frame.of(0, py)[1], i, scores, tau)),
      onStep: (right, up) => onScore(i, clamp(scores[i] + (right + up) / 10, -LIMIT, LIMIT)),
    }));
  });
  return frame;
}

function curve(scores, tau, box, onTau) {
  const most = Math.log(scores.length);
  const frame = chart({ x: [0, HOT], y: [0, 1.2], box, yTicks: [0, 0.5, 1], xLabel: "temperature τ", yLabel: "entropy ℋ in nats" });
  frame.line([[0, most], [HOT, most]], { colour: null, width: 1, dash: "4 4" });
  frame.note(0.08, most + 0.03, `ln 3 = ${number(most, 3)}`);
  const temperatures = Array.from({ length: 99 }, (_, k) => COLD + (k * (HOT - COLD)) / 98);
  frame.line(temperatures.map((t) => [t, entropyOf(softmaxAt(scores, t))]), { colour: "two" });
  const [x, y] = frame.at(tau, entropyOf(softmaxAt(scores, tau)));
  const to = (t) => onTau(Number(clamp(Math.round(20 * t) / 20, COLD, HOT).toFixed(2)));
  frame.append(handle({
    x, y, colour: "two", label: "temperature, on the curve", value: tau, min: COLD, max: HOT, said: `τ = ${number(tau)}`,
    onMove: (px) => to(frame.of(px, 0)[0]), onStep: (right, up) => to(tau + (right + up) / 20),
  }));
  frame.note(HOT, 0.06, `slope ${number(slopeAt(scores, tau), 3)}`, { "text-anchor": "end" });
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
      label: "temperature τ", min: COLD, max: HOT, step: 0.05, value: now().tau, colour: "two", onInput: (tau) => put({ tau }),
    });
    const moves = buttons(...Object.entries(MOVES).map(([label, move]) => [label, () => put({ scores: move(now().scores) })]));
    const figure = drawing("", (width) => {
      const { scores, tau } = now();
      const narrow = width < 520; // both side by side even there, so that they stay in view
      const [first, gap] = [(narrow ? 0.52 : 0.42) * width, narrow ? 40 : 64];
      const second = width - first;
      return [
        240,
        bars(scores, tau, [narrow ? 28 : 34, 34, first - gap, 165], (i, score) => put({ scores: now().scores.map((s, j) => (j === i ? score : s)) })),
        curve(scores, tau, [first + 34, 34, second - 44, 165], (t) => put({ tau: t })),
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
    el.append(figure, ...sliders, heat, moves, told);
    draw(now());
  },
};
