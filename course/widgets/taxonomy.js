// Pairs to remember: feed them one by one into a list, a window, a sum and a corrected square, and ask for any of them.

const [WIDTH, MOST, WINDOW, SHARPNESS] = [8, 24, 4, 30];
const MEMORIES = [
  ["list", "one"],
  ["window", "two"],
  ["sum", "three"],
  ["corrected", "four"],
];

const inner = (a, b) => a.reduce((s, x, i) => s + x * b[i], 0);

// k M for a state M of rows.
function read(k, M) {
  return M[0].map((_, c) => k.reduce((s, x, a) => s + x * M[a][c], 0));
}

function square() {
  return Array.from({ length: WIDTH }, () => Array(WIDTH).fill(0));
}

// The two states after n pairs: one adds outer products, one writes what is missing.
function states({ keys_of, values_of, n }) {
  const [sum, corrected] = [square(), square()];
  for (let t = 0; t < n; t++) {
    const [raw, v] = [keys_of[t], values_of[t]];
    const length = Math.sqrt(inner(raw, raw));
    const k = raw.map((x) => x / length);
    const there = read(k, corrected);
    for (let a = 0; a < WIDTH; a++)
      for (let c = 0; c < WIDTH; c++) {
        sum[a][c] += raw[a] * v[c];
        corrected[a][c] += k[a] * (v[c] - there[c]);
      }
  }
  return { sum, corrected };
}

// Whose value each memory answers with, for every key that was fed, counted from 1.
function taken(state) {
  const { keys_of, values_of, n } = state;
  const made = states(state);
  const [key, value] = [keys_of.slice(0, n), values_of.slice(0, n)];
  const nearest = (out) => {
    const gaps = value.map((v) => v.reduce((s, x, c) => s + (x - out[c]) ** 2, 0));
    return gaps.indexOf(Math.min(...gaps)) + 1;
  };
  const attend = (from) => (k) => {
    const weights = softmax(key.slice(from).map((other) => SHARPNESS * inner(k, other)));
    return value[0].map((_, c) => weights.reduce((s, w, j) => s + w * value[from + j][c], 0));
  };
  const forms = { list: attend(0), window: attend(Math.max(n - WINDOW, 0)), sum: (k) => read(k, made.sum), corrected: (k) => read(k, made.corrected) };
  return Object.fromEntries(Object.entries(forms).map(([name, f]) => [name, key.map((k) => nearest(f(k)))]));
}

function said(state) {
  const found = taken(state);
  const right = MEMORIES.map(([name]) => `${name} ${found[name].filter((x, i) => x === i + 1).length}`).join(", ");
  const told = `Of ${state.n} pairs answered right: ${right}. The list keeps ${2 * WIDTH * state.n} numbers, the others at most 64.`;
  if (state.asked > state.n) return `${told} Pair ${state.asked} has not been fed.`;
  const given = MEMORIES.map(([name]) => `${name} ${found[name][state.asked - 1]}`).join(", ");
  return `${told} Asked for pair ${state.asked}, they answer with the value of pair: ${given}.`;
}

function lanes(state, width, onAsk) {
  const found = taken(state);
  const made = states(state);
  const [left, tall, gap] = [4, 84, 10];
  const step = (width - 2 * left) / MOST;
  const nodes = [];
  MEMORIES.forEach(([name, colour], lane) => {
    const top = 6 + lane * (tall + gap);
    const right = found[name].filter((x, i) => x === i + 1).length;
    const numbers = name === "list" ? 2 * WIDTH * state.n : 2 * WIDTH * WINDOW;
    const kept = name === "window" ? Math.min(state.n, WINDOW) * 2 * WIDTH : numbers;
    nodes.push(text(left, top + 14, `${name}: ${kept} numbers, ${right} of ${state.n} right`, { class: "course-strong" }));
    // what is kept: a block a pair, or the square itself
    if (made[name]) {
      const most = Math.max(1e-9, ...made[name].flat().map(Math.abs));
      const cell = 4.2;
      made[name].forEach((line, a) =>
        line.forEach((x, c) =>
          nodes.push(svg("rect", { x: left + c * 2 * cell, y: top + 20 + a * cell, width: 2 * cell - 0.6, height: cell - 0.6, fill: `var(--${x < 0 ? "wrong" : colour})`, "fill-opacity": 0.08 + (0.92 * Math.abs(x)) / most })),
        ),
      );
    } else {
      const from = name === "window" ? Math.max(state.n - WINDOW, 0) : 0;
      for (let i = from; i < state.n; i++) nodes.push(svg("rect", { x: left + i * step + 1, y: top + 22, width: step - 2, height: 30, rx: 2, fill: `var(--${colour})`, "fill-opacity": 0.75 }));
    }
    // what is answered: a cell a pair
    for (let i = 0; i < MOST; i++) {
      const fed = i < state.n;
      const good = fed && found[name][i] === i + 1;
      const chosen = i + 1 === state.asked;
      const at = { x: left + i * step + 1, y: top + 58, width: step - 2, height: 22, rx: 3 };
      const target = svg("rect", { ...at, fill: good ? `var(--${colour})` : "transparent", "fill-opacity": good ? 0.9 : 1, stroke: "currentColor", "stroke-width": chosen ? 3 : 1, "stroke-opacity": fed ? 0.9 : 0.2, style: "cursor: pointer" });
      target.addEventListener("click", () => onAsk(i + 1));
      nodes.push(target);
      if (fed && !good) nodes.push(text(at.x + at.width / 2, at.y + 15, "×", { "text-anchor": "middle", style: "pointer-events: none" }));
    }
  });
  return [6 + 4 * (tall + gap), ...nodes];
}

export default {
  render({ model, el }) {
    const put = connect(model, el, ["n", "asked"], draw);
    const now = () => Object.fromEntries(["n", "asked", "keys_of", "values_of"].map((name) => [name, model.get(name)]));
    const fed = slider({ label: "pairs fed", min: 1, max: MOST, step: 1, value: now().n, format: (x) => String(x), colour: "key", onInput: (n) => put({ n }) });
    const asks = slider({ label: "pair asked for", min: 1, max: MOST, step: 1, value: now().asked, format: (x) => String(x), colour: "query", onInput: (asked) => put({ asked }) });
    const figure = drawing("", (width) => lanes(now(), width, (asked) => put({ asked })));
    const told = sentence();
    function draw() {
      const state = now();
      fed.set(state.n);
      asks.set(state.asked);
      figure.redraw();
      figure.describe(`Four memories and a cell for each pair, filled where it is answered right. ${said(state)}`);
      told.say(said(state));
    }
    el.append(fed, asks, figure, told);
    draw();
  },
};
