// A prompt, the ten words that follow its last one most often, a temperature and two filters: what is drawn from.

// The last word of a prompt as the table knows it; "" for one that it does not know.
function lastWord(prompt, { words, followers }) {
  const word = (prompt.match(/[A-Za-z]+(?:['’][a-z]+)?|[.!?]/g) ?? [""]).at(-1).replace(/[!?]/, ".");
  const known = words.slice(0, followers.length);
  return [word, word.toLowerCase()].find((one) => known.includes(one)) ?? "";
}

// What may come after a prompt: ten tokens and their logits.
function comes(prompt, table) {
  const row = table.followers[table.words.indexOf(lastWord(prompt, table))];
  return { tokens: row.map(([i]) => table.words[i]), logits: row.map(([, thousandths]) => thousandths / 1000) };
}

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
  const kept = state.tokens.map((token, i) => [token, probs[i]]).filter(([, p]) => p > 0);
  const [tau, p, m] = [state.tau, state.top_p, state.min_p].map((x) => x.toFixed(2));
  return (
    `After “${state.prompt.trim().split(/\s+/).at(-1) || "…"}”, at temperature ${tau} with top-p ${p} and min-p ${m}, the temperature ${state.last ? "last" : "first"}, ` +
    `${kept.length} of ${state.tokens.length} tokens are left: ${kept.map(([token, q]) => `${token} ${q.toFixed(3)}`).join(", ")}.`
  );
}

// The index that a number u in [0, 1) draws.
function drawnBy(u, probs) {
  let sum = 0;
  const found = probs.findIndex((p) => (sum += p) > u);
  return found < 0 ? probs.lastIndexOf(Math.max(...probs)) : found;
}

function bars(state, width) {
  const [plain, probs] = [softmax(state.logits), drawnFrom(state)];
  const top = Math.max(0.5, ...plain, ...probs);
  const y = [0, Math.ceil(10 * top) / 10];
  const narrow = width < 480; // then percent, whose two digits have room above a bar
  const percent = (t) => String(Math.round(100 * t));
  const frame = chart({
    x: [-0.6, 9.6], y, box: [34, 30, width - 44, 170], xTicks: [], yFormat: narrow ? percent : String,
    yLabel: `${narrow ? "%" : "probability"} (dashed: the model's own)`,
  });
  const slanted = width < 620;
  probs.forEach((p, i) => {
    if (p > 0) frame.bar(i, p, { width: 0.7 });
    const before = frame.bar(i, plain[i], { width: 0.78 });
    for (const [name, value] of Object.entries({ fill: "none", stroke: "currentColor", "stroke-dasharray": "3 3" })) before.setAttribute(name, value);
    const [x, high] = frame.at(i, Math.max(p, plain[i]));
    const low = frame.at(i, 0)[1] + 16;
    if (p > 0) frame.append(text(x, high - 6, narrow ? percent(p) : number(p), { "text-anchor": "middle", class: "course-strong" }));
    const turn = slanted ? { "text-anchor": "end", transform: `rotate(-40 ${x} ${low})` } : { "text-anchor": "middle" };
    frame.append(text(x, low, state.tokens[i], turn));
  });
  return frame;
}

const NAMES = ["prompt", "tokens", "logits", "tau", "top_p", "min_p", "last"];

export default {
  render({ model, el }) {
    const put = connect(model, el, NAMES, draw);
    const now = () => Object.fromEntries(NAMES.map((name) => [name, model.get(name)]));
    const table = JSON.parse(model.get("table"));
    const write = (prompt) => put({ prompt, ...comes(prompt, table) });
    const typed = field({ label: "Prompt", value: now().prompt, rows: 2, onInput: write });
    const moves = buttons(
      ["Draw the next word", () => {
        const { prompt, tokens } = now();
        const word = tokens[drawnBy(Math.random(), drawnFrom(now()))];
        write(`${prompt.trimEnd()}${word === "." || !prompt.trim() ? "" : " "}${word}`);
      }],
      ["Start again", () => write("She was")],
    );
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
      typed.set(state.prompt);
      for (const [name, node] of Object.entries(knobs)) node.set(state[name]);
      order.set(state.last);
      figure.redraw();
      figure.describe(`Bars of the probabilities of the ten words that come next most often, before and after. ${said(state)}`);
      told.say(said(state));
    }
    el.append(figure, typed, moves, ...Object.values(knobs), order, told);
    draw(now());
  },
};
