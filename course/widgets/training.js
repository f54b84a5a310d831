// Compute budgets: the loss of all models that cost the same, a line through the best of each, and a model to move among them.

const PUBLISHED = { floor: 1.69, c_N: 406.4, c_D: 410.7, alpha_N: 0.34, alpha_D: 0.28 };
const REFIT = { floor: 1.8172, c_N: 482.01, c_D: 2085.43, alpha_N: 0.3478, alpha_D: 0.3658 };

const expected = (N, D, law) => law.floor + law.c_N / N ** law.alpha_N + law.c_D / D ** law.alpha_D;

// Parameters, tokens and loss at the optimum.
function best({ exponent, refit }) {
  const law = refit ? REFIT : PUBLISHED;
  const both = law.alpha_N + law.alpha_D;
  const product = 10 ** exponent / 6;
  const N = ((law.alpha_N * law.c_N) / (law.alpha_D * law.c_D)) ** (1 / both) * product ** (law.alpha_D / both);
  return [N, product / N, expected(N, product / N, law)];
}

function amount(x) {
  for (const [size, word] of [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"]]) if (x >= size) return `${number(x / size)} ${word}`;
  return number(x, 0);
}

function said(state) {
  const [N, D, loss] = best(state);
  return (
    `With ${scientific(10 ** state.exponent)} FLOPs the ${state.refit ? "refit" : "published fit"} asks for ${amount(N)} parameters and ${amount(D)} tokens, ` +
    `${number(D / N, 1)} tokens a parameter, and expects a loss of ${number(loss)} nats a token.`
  );
}

// The models that cost C, as [log10 N, loss], as far as the frame shows them.
function valley({ exponent, refit }) {
  const points = Array.from({ length: 141 }, (_, k) => 6 + k / 20);
  const losses = points.map((x) => [x, expected(10 ** x, 10 ** (exponent - x) / 6, refit ? REFIT : PUBLISHED)]);
  return losses.filter(([, loss]) => loss <= 5);
}

const BUDGETS = [18, 19, 20, 21, 22, 23, 24, 25, 26];

// The valleys of all budgets, the chosen one strong, the line through their floors, and the chosen model on its valley.
function curves(state, size, box, onMove) {
  const law = state.refit ? REFIT : PUBLISHED;
  const frame = chart({
    x: [6, 13], y: [1.5, 5], box, xTicks: [6, 8, 10, 12], yTicks: [2, 3, 4, 5], xFormat: (t) => power(t), xLabel: "parameters N", yLabel: box[2] < 400 ? "loss" : "loss, nats a token; budgets C in FLOPs",
  });
  for (const exponent of BUDGETS) {
    const points = valley({ ...state, exponent });
    frame.line(points, { colour: "one", width: 1 }).setAttribute("stroke-opacity", 0.45);
    if (exponent % 2) continue;
    const [x, loss] = points.at(-1);
    frame.note(x, loss, power(exponent), loss > 4.7 ? { dy: -5, "text-anchor": "middle", class: "course-small" } : { dx: 4, dy: 3, class: "course-small" });
  }
  frame.line(valley({ ...state, refit: !state.refit }), { colour: null, width: 1, dash: "4 4" });
  frame.line(valley(state), { colour: "one", width: 3 });
  const floors = Array.from({ length: 81 }, (_, k) => best({ ...state, exponent: 18 + k / 10 })).filter(([N, , loss]) => N >= 1e6 && loss <= 5);
  frame.line(floors.map(([N, , loss]) => [Math.log10(N), loss]), { colour: "two", width: 2.5 });
  frame.note(9.2, 1.55, "the best of each budget", { style: "fill: var(--two)", class: "course-strong", "text-anchor": "end" });
  const [N, , floor] = best(state);
  frame.dot(Math.log10(N), floor, { colour: "two", r: 6 });
  const shown = valley(state);
  const at = clamp(size, shown[0][0], shown.at(-1)[0]);
  const loss = expected(10 ** at, 10 ** (state.exponent - at) / 6, law);
  const [x, y] = frame.at(at, loss);
  const to = (place) => onMove(clamp(Math.round(20 * place) / 20, shown[0][0], shown.at(-1)[0]));
  const [model, above] = [`${amount(10 ** at)} parameters, ${amount(10 ** (state.exponent - at) / 6)} tokens`, `${number(loss - floor)} nats above the best`];
  frame.append(handle({
    x, y, colour: "one", label: "model size N", value: at, min: shown[0][0], max: shown.at(-1)[0], said: `${model}: ${above}`,
    onMove: (px) => to(frame.of(px, 0)[0]), onStep: (right, up) => to(at + (right + up) / 20),
  }));
  frame.append(text(0, 14, `Dot: ${model},`, { class: "course-strong" }), text(0, 31, above, { class: "course-strong" }));
  return frame;
}

export default {
  render({ model, el }) {
    const names = ["exponent", "refit"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const budget = slider({ label: "compute C in FLOPs", min: 18, max: 26, step: 0.1, value: now().exponent, format: (x) => scientific(10 ** x), onInput: (exponent) => put({ exponent }) });
    const fit = toggle({ label: "constants of the refit", value: now().refit, onChange: (refit) => put({ refit }) });
    let size = 9.5; // of the model to move, as a power of ten
    const figure = drawing("", (room) => [340, curves(now(), size, [44, 74, room - 84, 215], (moved) => {
      size = moved;
      figure.redraw();
    })]);
    const told = sentence();
    function draw(state) {
      budget.set(state.exponent);
      fit.set(state.refit);
      figure.redraw();
      figure.describe(`Valleys of loss over the number of parameters, in each of which all models cost the same, and the line through their lowest points. ${said(state)}`);
      told.say(said(state));
    }
    el.append(figure, budget, fit, told);
    draw(now());
  },
};
