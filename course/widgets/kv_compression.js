// The cache as a shelf: what stays of a real text at a budget, by method, and what the model then answers.

const METHODS = ["sinks + window", "random + window", "heavy hitters", "value-aware + sinks", "4 bits"];
const BUDGETS = [0.5, 0.25, 0.125, 0.0625];

const seen = (text) => text.replaceAll("\n", "⏎");

function here({ found, method, budget }) {
  return found.find((each) => each.method === method && each.budget === budget);
}

function said(state) {
  const { tokens, answer, full, method, budget, asked } = state;
  const now = here(state);
  const kept = answer.reduce((sum, i) => sum + Number(now.stays[i]), 0) / answer.length / 9;
  return (
    `${method} at 1/${Math.round(1 / budget)} of the bytes keeps ${now.n} of ${tokens.length} tokens in each cache. ` +
    `Of the passkey's digits it keeps about ${(100 * kept).toFixed(0)}%, and the model answers “${seen(now.says)}”; with the whole cache “${full}”. ` +
    `Token ${asked}, “${seen(tokens[asked])}”, stays in about ${((100 * Number(now.stays[asked])) / 9).toFixed(0)}% of the caches.`
  );
}

// The shelf: a box a token, in rows; the passkey's digits have a frame.
function boxes(state, width, onAsk) {
  const { tokens, answer, asked, full } = state;
  const now = here(state);
  const across = Math.max(12, Math.min(32, Math.floor(width / 19)));
  const [step, tall, top] = [width / across, 26, 30];
  const right = seen(now.says) === full;
  const nodes = [text(2, 18, `answers “${seen(now.says)}”, ${right ? "right" : "wrong"}`, { class: "course-strong", style: `fill: var(--${right ? "right" : "wrong"})` })];
  tokens.forEach((token, i) => {
    const at = { x: (i % across) * step + 1, y: top + Math.floor(i / across) * (tall + 4), width: step - 2, height: tall, rx: 3 };
    const share = Number(now.stays[i]) / 9;
    const digit = answer.includes(i);
    const stroke = digit ? "var(--wrong)" : "currentColor";
    const box = svg("rect", { ...at, fill: "var(--one)", "fill-opacity": 0.9 * share, stroke, "stroke-width": i === asked ? 3 : digit ? 2 : 1, "stroke-opacity": digit || i === asked ? 1 : 0.25, style: "cursor: pointer" });
    box.addEventListener("click", () => onAsk(i));
    nodes.push(box);
    if (digit) nodes.push(text(at.x + at.width / 2, at.y + 17, token.trim(), { "text-anchor": "middle", style: `pointer-events: none${share > 0.6 ? "; fill: #111" : ""}` }));
  });
  return [top + Math.ceil(tokens.length / across) * (tall + 4) + 4, ...nodes];
}

export default {
  render({ model, el }) {
    const names = ["method", "budget", "asked"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries([...names, "tokens", "answer", "full", "found"].map((name) => [name, model.get(name)]));
    const how = choice({ label: "method", options: METHODS.map((name) => [name, name]), value: now().method, onChange: (method) => put({ method }) });
    const much = slider({ label: "budget", min: 0, max: 3, step: 1, value: BUDGETS.indexOf(now().budget), format: (i) => `1/${Math.round(1 / BUDGETS[i])}`, colour: "one", onInput: (i) => put({ budget: BUDGETS[i] }) });
    const which = slider({ label: "token", min: 0, max: now().tokens.length - 1, step: 1, value: now().asked, format: (i) => String(i), onInput: (asked) => put({ asked }) });
    const figure = drawing("", (width) => boxes(now(), width, (asked) => put({ asked })));
    const told = sentence();
    function draw() {
      const state = now();
      how.set(state.method);
      much.set(BUDGETS.indexOf(state.budget));
      which.set(state.asked);
      figure.redraw();
      figure.describe(`A box for each token of a text, the fuller its colour the more of the model's caches keep it; the passkey's digits have a frame. ${said(state)}`);
      told.say(said(state));
    }
    el.append(how, much, which, figure, told);
    draw();
  },
};
