// A compute budget: the loss of all models that cost C, and the best of them.

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
    `With 10 to the power ${number(state.exponent, 1)} FLOPs the ${state.refit ? "refit" : "published fit"} asks for ${amount(N)} parameters and ${amount(D)} tokens, ` +
    `${number(D / N, 1)} tokens a parameter, and expects a loss of ${number(loss)} nats a token.`
  );
}

// The models that cost C, as [log10 N, loss], as far as the frame shows them.
function valley({ exponent, refit }) {
  const points = Array.from({ length: 141 }, (_, k) => 6 + k / 20);
  const losses = points.map((x) => [x, expected(10 ** x, 10 ** (exponent - x) / 6, refit ? REFIT : PUBLISHED)]);
  return losses.filter(([, loss]) => loss <= 5);
}

function curves(state, box) {
  const frame = chart({ x: [6, 13], y: [1.5, 5], box, xTicks: [6, 8, 10, 12], yTicks: [2, 3, 4, 5], format: (t) => (t >= 6 ? `10^${t}` : String(t)), xLabel: "parameters N", yLabel: "loss, nats a token" });
  const other = { ...state, refit: !state.refit };
  frame.line(valley(other), { colour: "residual", width: 1.5, dash: "4 4" });
  frame.line(valley(state), { colour: "query" });
  const [N, , loss] = best(state);
  frame.dot(Math.log10(N), loss, { colour: "right", r: 6 });
  return frame;
}

export default {
  render({ model, el }) {
    const names = ["exponent", "refit"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const budget = slider({ label: "compute C in FLOPs", min: 18, max: 26, step: 0.1, value: now().exponent, format: (x) => `10^${number(x, 1)}`, onInput: (exponent) => put({ exponent }) });
    const fit = toggle({ label: "constants of the refit", value: now().refit, onChange: (refit) => put({ refit }) });
    const figure = drawing("", (room) => [300, curves(now(), [44, 30, room - 60, 215])]);
    const told = sentence();
    function draw(state) {
      budget.set(state.exponent);
      fit.set(state.refit);
      figure.redraw();
      figure.describe(`Two valleys of loss over the number of parameters, all points at the same compute; the dot is the lowest point of the chosen fit. ${said(state)}`);
      told.say(said(state));
    }
    el.append(budget, fit, figure, told);
    draw(now());
  },
};
