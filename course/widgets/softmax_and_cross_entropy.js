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

function bars(scores, tau) {
  const group = svg("g");
  const [left, bottom, height, width] = [34, 205, 165, 52];
  for (const level of [0, 0.5, 1]) {
    const y = bottom - level * height;
    group.append(svg("line", { x1: left, x2: left + 216, y1: y, y2: y, stroke: "currentColor", "stroke-opacity": 0.25 }));
    group.append(text(left - 6, y + 4, level, { "text-anchor": "end" }));
  }
  const plain = softmaxAt(scores, 1);
  softmaxAt(scores, tau).forEach((p, i) => {
    const x = left + 14 + i * (width + 18);
    group.append(svg("rect", { x, y: bottom - p * height, width, height: p * height, fill: "var(--weights)" }));
    group.append(
      svg("rect", {
        x: x - 3, y: bottom - plain[i] * height, width: width + 6, height: plain[i] * height,
        fill: "none", stroke: "currentColor", "stroke-dasharray": "3 3",
      }),
    );
    group.append(text(x + width / 2, bottom - Math.max(p, plain[i]) * height - 6, p.toFixed(3), { "text-anchor": "middle" }));
    group.append(text(x + width / 2, bottom + 17, `${NAMES[i]}: ${scores[i].toFixed(1)}`, { "text-anchor": "middle" }));
  });
  group.append(text(left, 16, "probability (dashed: τ = 1)"));
  return group;
}

function curve(scores, tau) {
  const group = svg("g");
  const [left, bottom, height, width] = [330, 205, 150, 250];
  const most = Math.log(scores.length);
  const at = (t, h) => [left + ((t - COLD) / (HOT - COLD)) * width, bottom - (h / most) * height];
  const points = Array.from({ length: 99 }, (_, k) => {
    const t = COLD + (k * (HOT - COLD)) / 98;
    return at(t, entropyOf(softmaxAt(scores, t))).join(",");
  });
  const line = (y, extra) => svg("line", { x1: left, x2: left + width, y1: y, y2: y, stroke: "currentColor", ...extra });
  group.append(line(bottom, { "stroke-opacity": 0.5 }), line(bottom - height, { "stroke-dasharray": "4 4" }));
  group.append(text(left + 4, bottom - height - 6, `ln 3 = ${most.toFixed(3)} nats`), text(left, 16, "entropy against τ"));
  group.append(svg("polyline", { points: points.join(" "), fill: "none", stroke: "var(--query)", "stroke-width": 2.5 }));
  const [x, y] = at(tau, entropyOf(softmaxAt(scores, tau)));
  group.append(svg("circle", { cx: x, cy: y, r: 6, fill: "var(--weights)", stroke: "currentColor" }));
  for (const t of [1, 2, 3, 4, 5]) group.append(text(at(t, 0)[0], bottom + 17, t, { "text-anchor": "middle" }));
  group.append(text(left + width, bottom - 8, `slope at the dot ${slopeAt(scores, tau).toFixed(3)}`, { "text-anchor": "end" }));
  return group;
}

export default {
  render({ model, el }) {
    el.classList.add("course-widget");
    const drawing = picture(600, 230, "");
    const line = element("p", { class: "course-said", "aria-live": "polite" });
    const change = (name, value) => {
      model.set(name, value);
      model.save_changes();
      draw();
    };
    const sliders = NAMES.map((name, i) =>
      slider({
        label: `score of ${name}`, min: -LIMIT, max: LIMIT, step: 0.1, value: model.get("scores")[i],
        format: (x) => x.toFixed(1),
        onInput: (x) => change("scores", model.get("scores").map((s, j) => (j === i ? x : s))),
      }),
    );
    const heat = slider({
      label: "temperature τ", min: COLD, max: HOT, step: 0.05, value: model.get("tau"),
      onInput: (x) => change("tau", x),
    });
    const moves = [
      ["Add 1 to every score", (scores) => scores.map((s) => s + 1)],
      ["Double every score", (scores) => scores.map((s) => 2 * s)],
      ["Start again", () => [2, 1, 0]],
    ].map(([label, move]) => {
      const button = element("button", { type: "button" }, label);
      button.addEventListener("click", () => {
        const next = move(model.get("scores"));
        if (next.every((s) => Math.abs(s) <= LIMIT)) change("scores", next);
      });
      button.move = move;
      return button;
    });
    function draw() {
      const [scores, tau] = [model.get("scores"), model.get("tau")];
      sliders.forEach((row, i) => row.set(scores[i]));
      heat.set(tau);
      for (const button of moves) button.disabled = !button.move(scores).every((s) => Math.abs(s) <= LIMIT);
      drawing.replaceChildren(bars(scores, tau), curve(scores, tau));
      drawing.describe(said(scores, tau));
      line.textContent = said(scores, tau);
    }
    model.on("change:scores", draw);
    model.on("change:tau", draw);
    el.append(...sliders, heat, element("p", {}, ...moves.flatMap((button) => [button, " "])), drawing, line);
    draw();
  },
};
