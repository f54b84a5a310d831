// Ten tokens, a temperature and two filters: what the model says, and what is drawn from.

const TOKENS = ["very", "not", "so", "a", "the", "in", "now", "of", "blue", "xylophone"];

// Which tokens are in the nucleus: those whose more probable ones sum to less than p.
function inTopP(probs, p) {
  const order = probs.map((_, i) => i).sort((i, j) => probs[j] - probs[i] || i - j);
  const kept = probs.map(() => p === 1);
  let before = 0;
  for (const i of order) {
    if (before < p) kept[i] = true;
    before += probs[i];
  }
  return kept;
}

// Which tokens are at least m times as probable as the most probable one.
function inMinP(logits, m) {
  const bar = Math.max(...logits) + (m > 0 ? Math.log(m) : -Infinity);
  return logits.map((z) => z >= bar);
}

// The probabilities that are drawn from, 0 for what is filtered out.
function drawnFrom({ logits, tau, top_p, min_p, last }) {
  const seen = last ? logits : logits.map((z) => z / tau);
  const [nucleus, near] = [inTopP(softmax(seen), top_p), inMinP(seen, min_p)];
  return softmax(seen.map((z, i) => (nucleus[i] && near[i] ? (last ? z / tau : z) : -Infinity)));
}

function said(state) {
  const probs = drawnFrom(state);
  const kept = TOKENS.map((token, i) => [token, probs[i]]).filter(([, p]) => p > 0);
  const [tau, p, m] = [state.tau, state.top_p, state.min_p].map((x) => x.toFixed(2));
  return (
    `At temperature ${tau} with top-p ${p} and min-p ${m}, the temperature ${state.last ? "last" : "first"}, ` +
    `${kept.length} of ${TOKENS.length} tokens are left: ${kept.map(([token, q]) => `${token} ${q.toFixed(3)}`).join(", ")}.`
  );
}

function bars(state, width) {
  const [plain, probs] = [softmax(state.logits), drawnFrom(state)];
  const top = Math.max(0.5, ...plain, ...probs);
  const y = [0, Math.ceil(10 * top) / 10];
  const frame = chart({ x: [-0.6, 9.6], y, box: [34, 30, width - 44, 170], xTicks: [], yLabel: "probability (dashed: the model's own)" });
  const slanted = width < 620;
  probs.forEach((p, i) => {
    if (p > 0) frame.bar(i, p, { colour: "weights", width: 0.7 });
    const before = frame.bar(i, plain[i], { width: 0.78 });
    for (const [name, value] of Object.entries({ fill: "none", stroke: "currentColor", "stroke-dasharray": "3 3" })) before.setAttribute(name, value);
    const [x, high] = frame.at(i, Math.max(p, plain[i]));
    const low = frame.at(i, 0)[1] + 16;
    if (p > 0) frame.append(text(x, high - 6, number(p, width < 480 ? 1 : 2), { "text-anchor": "middle", class: "course-strong" }));
    const turn = slanted ? { "text-anchor": "end", transform: `rotate(-40 ${x} ${low})` } : { "text-anchor": "middle" };
    frame.append(text(x, low, TOKENS[i], turn));
  });
  return frame;
}

const NAMES = ["logits", "tau", "top_p", "min_p", "last"];

export default {
  render({ model, el }) {
    const put = connect(model, el, NAMES, draw);
    const now = () => Object.fromEntries(NAMES.map((name) => [name, model.get(name)]));
    const knob = (name, label, min, max) =>
      slider({ label, min, max, step: 0.05, value: now()[name], onInput: (x) => put({ [name]: x }) });
    const knobs = {
      tau: knob("tau", "temperature τ", 0.2, 4),
      top_p: knob("top_p", "top-p (1 keeps all)", 0.05, 1),
      min_p: knob("min_p", "min-p (0 keeps all)", 0, 1),
    };
    const order = toggle({ label: "temperature last, after the filters", value: now().last, onChange: (last) => put({ last }) });
    const figure = drawing("", (width) => [width < 620 ? 275 : 235, bars(now(), width)]);
    const told = sentence();
    function draw(state) {
      for (const [name, node] of Object.entries(knobs)) node.set(state[name]);
      order.set(state.last);
      figure.redraw();
      figure.describe(`Bars of ten tokens' probabilities, before and after. ${said(state)}`);
      told.say(said(state));
    }
    el.append(...Object.values(knobs), order, figure, told);
    draw(now());
  },
};
