// One sentence, 270 heads: touch a word to see where a head looks from there; the wall shades and sorts the heads by a score.

const [LAYERS, HEADS, ROW] = [30, 9, 25];
const SCORES = {
  previous: "weight on the token before",
  first: "weight on the first token",
  same: "weight on earlier copies of the token",
  itself: "weight on itself",
};

// The library calls controls side by side `row`; here a row is one of a map.
const row_ = (...nodes) => element("div", { class: "course-row" }, ...nodes);

const names = ({ tokens }) => tokens.map((token) => token.trim());

// Bytes of the lower triangles; those of head k begin at k · T (T + 1) / 2, row i of a head at i (i + 1) / 2.
let unpacked = ["", null];
function bytes({ packed }) {
  if (unpacked[0] !== packed) unpacked = [packed, Uint8Array.from(atob(packed), (c) => c.charCodeAt(0))];
  return unpacked[1];
}

function row(state, k, i) {
  const T = state.tokens.length;
  const start = (k * T * (T + 1)) / 2 + (i * (i + 1)) / 2;
  return Array.from(bytes(state).subarray(start, start + i + 1));
}

function scores(state) {
  const T = state.tokens.length;
  const words = names(state);
  const asked = words.flatMap((_, i) => {
    if (state.by === "same") return words.slice(0, i).flatMap((other, j) => (other === words[i] ? [[i, j]] : []));
    return i === 0 ? [] : [[i, { previous: i - 1, first: 0, itself: i }[state.by]]];
  });
  const queries = new Set(asked.map(([i]) => i)).size;
  const all = bytes(state);
  return Array.from({ length: LAYERS * HEADS }, (_, k) => {
    const start = (k * T * (T + 1)) / 2;
    return asked.reduce((sum, [i, j]) => sum + all[start + (i * (i + 1)) / 2 + j], 0) / (255 * queries);
  });
}

function order(found) {
  return found.map((_, k) => k).sort((a, b) => found[b] - found[a] || a - b);
}

function said(state) {
  const k = state.layer * HEADS + state.head;
  const weights = row(state, k, state.word);
  const words = names(state);
  const most = weights.map((_, j) => j).sort((a, b) => weights[b] - weights[a] || a - b).slice(0, 3);
  const looks = most.map((j) => `${number(weights[j] / 255)} on “${words[j]}” (token ${j})`).join(", ");
  const found = scores(state);
  return (
    `Layer ${state.layer}, head ${state.head}, from “${words[state.word]}” (token ${state.word}): ${looks}. Its mean ` +
    `${SCORES[state.by]} is ${number(found[k])}, rank ${order(found).indexOf(k) + 1} of ${found.length}.`
  );
}

// The tokens one under another, with a bow from the chosen one to each that it looks at, as thick as the weight.
function bows(state, width, choose) {
  const words = names(state);
  const weights = row(state, state.layer * HEADS + state.head, state.word);
  const [left, middle] = [126, (i) => 14 + ROW * i];
  const room = 1.3 * (width - left - 10);
  const drawn = words.map((word, i) => {
    const share = i <= state.word ? weights[i] / 255 : 0;
    const back = svg("rect", { x: 0, y: ROW * i + 2, width: left - 6, height: ROW - 3, rx: 4, fill: "var(--weights)", "fill-opacity": 0.55 * share });
    const frame = { x: 1, y: ROW * i + 2, width: left - 8, height: ROW - 3, rx: 4, fill: "transparent", style: "cursor: pointer" };
    const target = svg("rect", { ...frame, class: i === state.word ? "course-chosen" : undefined });
    target.addEventListener("click", () => choose(i));
    const look = { "text-anchor": "end", class: i === state.word ? "course-strong" : undefined, "fill-opacity": i > state.word ? 0.55 : 1 };
    const bulge = Math.min(room, 26 + 0.8 * Math.abs(state.word - i) * ROW);
    const [a, b] = [middle(state.word), middle(i)];
    const path = i === state.word ? `M ${left} ${a - 7} c 26 -6, 26 20, 0 14` : `M ${left} ${a} C ${left + bulge} ${a}, ${left + bulge} ${b}, ${left} ${b}`;
    const bow = svg("path", { d: path, fill: "none", stroke: "var(--weights)", "stroke-width": 0.5 + 9 * share, "stroke-opacity": 0.35 + 0.5 * share });
    const label = share >= 0.05 ? [text(6, middle(i) + 4, number(share), { class: "course-small" })] : [];
    return [back, text(left - 14, middle(i) + 4, word, look), target, ...(share > 0.01 ? [bow] : []), ...label];
  });
  return [ROW * words.length + 6, ...drawn.flat()];
}

// The map of the head: rows are tokens that look, columns tokens looked at.
function matrix(state, width, choose) {
  const T = state.tokens.length;
  const size = Math.min(15, (width - 20) / T);
  const words = names(state);
  const cells = words.flatMap((_, i) =>
    row(state, state.layer * HEADS + state.head, i).map((x, j) =>
      svg("rect", { x: 12 + j * size, y: 30 + i * size, width: size - 1, height: size - 1, fill: "var(--weights)", "fill-opacity": 0.08 + (0.92 * x) / 255 }),
    ),
  );
  const marks = words.map((_, i) => {
    const line = svg("rect", { x: 12, y: 30 + i * size, width: size * T, height: size, fill: "transparent", style: "cursor: pointer", class: i === state.word ? "course-chosen" : undefined });
    line.addEventListener("click", () => choose(i));
    return line;
  });
  return [36 + size * T, text(12, 18, "the same head: from (down) to (across)"), ...cells, ...marks];
}

// All heads, shaded by the score; a column is a layer.
function wall(state, width, choose) {
  const found = scores(state);
  const most = Math.max(...found);
  const [wide, high] = [(width - 34) / LAYERS, 18];
  const cells = found.map((x, k) => {
    const [layer, head] = [Math.floor(k / HEADS), k % HEADS];
    const chosen = layer === state.layer && head === state.head;
    const at = { x: 30 + layer * wide, y: 26 + head * high, width: wide - 1, height: high - 1 };
    const cell = svg("rect", { ...at, fill: "var(--one)", "fill-opacity": 0.06 + (0.94 * x) / most, style: "cursor: pointer" });
    cell.addEventListener("click", () => choose({ layer, head }));
    return [cell, ...(chosen ? [svg("rect", { ...at, fill: "none", "pointer-events": "none", class: "course-chosen" })] : [])];
  });
  const below = 26 + HEADS * high + 14;
  const axes = [text(30 + wide * LAYERS, below + 16, "layer →", { "text-anchor": "end" }), text(0, below + 16, "↓ head")];
  const marks = [0, 10, 20, 29].map((layer) => text(30 + (layer + 0.5) * wide, below, layer, { "text-anchor": "middle" }));
  const heads = [0, 8].map((head) => text(24, 26 + (head + 0.5) * high + 4, head, { "text-anchor": "end" }));
  return [below + 22, ...axes, text(0, 14, `${SCORES[state.by]}, largest ${number(most)}`), ...cells.flat(), ...marks, ...heads];
}

export default {
  render({ model, el }) {
    const traits = ["layer", "head", "word", "by", "tokens", "packed"];
    const put = connect(model, el, traits, draw);
    const now = () => Object.fromEntries(traits.map((name) => [name, model.get(name)]));
    const place = (k) => ({ layer: Math.floor(k / HEADS), head: k % HEADS });
    const rank = (state) => order(scores(state)).indexOf(state.layer * HEADS + state.head) + 1;
    const options = Object.entries(SCORES);
    const by = choice({ label: "sort by", options, value: now().by, onChange: (name) => put({ by: name, ...place(order(scores({ ...now(), by: name }))[0]) }) });
    const sorted = slider({ label: "rank by this score", min: 1, max: LAYERS * HEADS, step: 1, value: rank(now()), format: String, onInput: (r) => put(place(order(scores(now()))[r - 1])) });
    const layers = slider({ label: "layer", min: 0, max: LAYERS - 1, step: 1, value: now().layer, format: String, onInput: (layer) => put({ layer }) });
    const heads = slider({ label: "head", min: 0, max: HEADS - 1, step: 1, value: now().head, format: String, onInput: (head) => put({ head }) });
    const last = now().tokens.length - 1;
    const from = slider({ label: "from token", min: 0, max: last, step: 1, value: now().word, format: (i) => `${i} ${names(now())[i]}`, colour: "weights", onInput: (word) => put({ word }) });
    const chosenWord = (word) => put({ word });
    const figures = [
      drawing("", (width) => bows(now(), width, chosenWord)),
      drawing("", (width) => matrix(now(), width, chosenWord)),
      drawing("", (width) => wall(now(), width, put)),
    ];
    const told = sentence();
    function draw(state) {
      by.set(state.by);
      sorted.set(rank(state));
      layers.set(state.layer);
      heads.set(state.head);
      from.set(state.word);
      figures.forEach((figure) => figure.redraw());
      const what = ["The sentence with a bow from one token to those it looks at.", "The map of the same head.", "A wall of all heads, shaded by a score."];
      figures.forEach((figure, i) => figure.describe(`${what[i]} ${said(state)}`));
      told.say(said(state));
    }
    const side = (basis, ...nodes) => element("div", { style: `flex: 1 1 ${basis}; min-width: 0` }, ...nodes);
    el.append(row_(by, sorted), row_(layers, heads), from);
    el.append(element("div", { style: "display: flex; flex-wrap: wrap; gap: 0 1.5rem" }, side("17rem", figures[0]), side("18rem", figures[1], figures[2])), told);
    draw(now());
  },
};
