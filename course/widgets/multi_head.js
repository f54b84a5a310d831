// The heads of the course's GPT on a sentence; and of one layer: width, parameters, multiplications and attention weights for a number of heads.

const D_MODEL = 768;
const COUNTS = Array.from({ length: D_MODEL }, (_, i) => i + 1).filter((n) => D_MODEL % n === 0);

function cost({ heads, T }) {
  const d_head = D_MODEL / heads;
  const parameters = 4 * D_MODEL * D_MODEL;
  return { d_head, parameters, products: T * parameters + 2 * heads * T * T * d_head, weights: heads * T * T };
}

function comma(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

function said(state) {
  const c = cost(state);
  const heads = state.heads === 1 ? "1 head" : `${state.heads} heads`;
  return (
    `${heads} of width ${c.d_head} in a layer of width ${D_MODEL}, ${comma(state.T)} tokens: ${comma(c.parameters)} parameters and ` +
    `${number(c.products / 1e9, 2)} billion multiplications, as with any number of heads; ${comma(c.weights)} attention weights, ` +
    `${number((4 * c.weights) / 2 ** 20, 1)} MiB in float32 if all are stored.`
  );
}

// The columns of one projection, cut into heads.
function columns({ heads }, width) {
  const [left, room] = [0, width];
  const step = room / heads;
  const cut = Math.min(2, step / 4);
  const cells = Array.from({ length: heads }, (_, h) =>
    svg("rect", { x: left + h * step, y: 30, width: step - cut, height: 26, rx: cut, fill: "var(--one)", "fill-opacity": h % 2 ? 0.6 : 1 }),
  );
  return [text(left, 20, `the ${D_MODEL} columns of one projection, cut into heads`), ...cells];
}

// Bars that compare numbers of heads at the same T: weights as a share of those of 64 heads, what goes beyond is cut
// with a mark; the other two always half as long as there is room, since no number of heads changes them.
function bars(state, width) {
  const c = cost(state);
  const most = cost({ heads: 64, T: state.T });
  const narrow = width < 480;
  const [left, room] = narrow ? [0, width] : [126, width - 126 - 150];
  const lines = [
    ["parameters", c.parameters / most.parameters / 2, comma(c.parameters), "one"],
    ["multiplications", c.products / most.products / 2, `${number(c.products / 1e9, 2)} billion`, "two"],
    ["attention weights", c.weights / most.weights, `${number(c.weights / 1e6, 1)} million`, "weights"],
  ];
  const step = narrow ? 52 : 32;
  const caption = text(narrow ? 0 : left, 92 + step * lines.length, "the bars compare numbers of heads at the same T");
  const drawn = lines.flatMap(([name, share, label, colour], i) => {
    const y = 76 + step * i;
    const long = room * Math.min(share, 1);
    const bar = svg("rect", { x: left, y: narrow ? y + 20 : y, width: Math.max(long, 1), height: 20, rx: 3, fill: `var(--${colour})` });
    const told = share > 1 ? `${label}, beyond the scale` : label;
    if (narrow) return [text(left, y + 13, `${name}: ${told}`), bar];
    return [text(left - 8, y + 15, name, { "text-anchor": "end" }), bar, text(left + long + 8, y + 15, share > 1 ? `${label} →` : label)];
  });
  return [...drawn, caption];
}

const [LAYERS, HEADS] = [6, 6];

// The weights of all heads from a byte each: lower triangles, row by row; of(layer, head)[query][key].
function unpacked(packed, T) {
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const size = (T * (T + 1)) / 2;
  const row = (start, i) => Array.from({ length: i + 1 }, (_, j) => bytes[start + (i * (i + 1)) / 2 + j] / 255);
  return (layer, head) => Array.from({ length: T }, (_, i) => row((layer * HEADS + head) * size, i));
}

// All heads of a layer as maps, query down and key across; the chosen one has a frame, the chosen query a mark.
function maps(of, { layer, head, word }, width, onHead) {
  const columns = width < 480 ? 3 : 6;
  const across = width / columns;
  const side = across - 14;
  return Array.from({ length: HEADS }, (_, h) => {
    const [left, top] = [(h % columns) * across + 2, Math.floor(h / columns) * (across + 14) + 22];
    const weights = of(layer, h);
    const cell = side / weights.length;
    const rects = weights.flatMap((row, i) => row.map((w, j) => (w < 0.02 ? "" : svg("rect", { x: left + j * cell, y: top + i * cell, width: cell, height: cell, fill: "var(--weights)", "fill-opacity": w }))));
    const frame = svg("rect", { x: left, y: top, width: side, height: side, rx: 3, fill: "transparent", class: h === head ? "course-chosen" : "course-box", style: "cursor: pointer" });
    frame.addEventListener("click", () => onHead(h));
    const mark = svg("path", { d: `M${left - 6} ${top + (word + 0.5) * cell - 4}l6 4l-6 4z`, fill: "currentColor" });
    return svg("g", {}, text(left, top - 6, `head ${h + 1}`, { class: h === head ? "course-strong" : undefined }), ...rects, frame, h === head ? mark : "");
  });
}

// The sentence as buttons, shaded by where the chosen head looks from the chosen word.
function words(tokens, onWord) {
  const nodes = tokens.map((token, i) => {
    const node = element("button", { type: "button", class: "course-word" }, token.trim());
    node.addEventListener("click", () => onWord(i));
    return node;
  });
  const node = element("div", { class: "course-words", role: "group", "aria-label": "the word that looks" }, ...nodes);
  node.set = (weights, word) =>
    nodes.forEach((one, i) => {
      one.setAttribute("aria-pressed", String(i === word));
      one.style.background = `color-mix(in srgb, var(--weights) ${Math.round(40 * (weights[i] ?? 0))}%, transparent)`;
      one.title = weights[i] === undefined ? "comes later" : `weight ${number(weights[i])}`;
    });
  return node;
}

function looked(tokens, row, { layer, head, word }) {
  const most = row.map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]).slice(0, 2);
  return `Layer ${layer + 1}, head ${head + 1}: “${tokens[word].trim()}” looks at ${most.map(([w, j]) => `“${tokens[j].trim()}” with ${number(w)}`).join(" and ")}.`;
}

export default {
  render({ model, el }) {
    const put = connect(model, el, ["heads", "T"], draw);
    const now = () => ({ heads: model.get("heads"), T: model.get("T") });
    const count = slider({ label: "heads", min: 0, max: COUNTS.length - 1, step: 1, value: COUNTS.indexOf(now().heads), format: (i) => String(COUNTS[i]), onInput: (i) => put({ heads: COUNTS[i] }) });
    const length = slider({ label: "tokens T", min: 128, max: 8192, step: 128, value: now().T, format: comma, onInput: (T) => put({ T }) });
    const figure = drawing("", (width) => [width < 480 ? 260 : 200, ...columns(now(), width), ...bars(now(), width)]);
    const tokens = model.get("tokens");
    const of = unpacked(model.get("packed"), tokens.length);
    const at = { layer: 3, head: 3, word: 15 }; // the word looks at the one before it
    const choose = (change) => {
      Object.assign(at, change);
      const row = of(at.layer, at.head)[at.word];
      layers.set(at.layer);
      heads.set(at.head);
      sentenceOf.set(row, at.word);
      shownAt.textContent = looked(tokens, row, at);
      wall.redraw();
      wall.describe(`The attention weights of the ${HEADS} heads of layer ${at.layer + 1} of the course's GPT. ${shownAt.textContent}`);
    };
    const wall = drawing("", (width) => [(width < 480 ? 2 : 1) * (width / (width < 480 ? 3 : 6) + 14) + 10, ...maps(of, at, width, (head) => choose({ head }))]);
    const sentenceOf = words(tokens, (word) => choose({ word }));
    const shownAt = element("p", { "aria-live": "polite" });
    const nth = (x) => String(x + 1);
    const layers = slider({ label: "layer", min: 0, max: LAYERS - 1, step: 1, value: at.layer, format: nth, colour: "weights", onInput: (layer) => choose({ layer }) });
    const heads = slider({ label: "head", min: 0, max: HEADS - 1, step: 1, value: at.head, format: nth, colour: "weights", onInput: (head) => choose({ head }) });
    const told = sentence();
    function draw(state) {
      count.set(COUNTS.indexOf(state.heads));
      length.set(state.T);
      figure.redraw();
      figure.describe(`The columns of a projection cut into heads, and bars of three costs. ${said(state)}`);
      told.say(said(state));
    }
    el.append(part(wall, sentenceOf, shownAt, layers, heads), part(figure, count, length, told));
    choose({});
    draw(now());
  },
};
