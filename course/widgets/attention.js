// Attention for two or three tokens: edit any number, see scores, weights, outputs, contributions.

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const norm = (a) => Math.sqrt(dot(a, a));

// query (T, d_k), key (S, d_k), value (S, d_v) to scores (T, S), weights (T, S), output (T, d_v), contributions (T, S).
function attend(query, key, value, scaled) {
  const scale = scaled ? 1 / Math.sqrt(query[0].length) : 1;
  const scores = query.map((q) => key.map((k) => dot(q, k) * scale));
  const weights = scores.map(softmax);
  const output = weights.map((row) => value[0].map((_, c) => row.reduce((sum, w, j) => sum + w * value[j][c], 0)));
  const contributions = weights.map((row) => row.map((w, j) => w * norm(value[j])));
  return { scores, weights, output, contributions };
}

const EXAMPLES = {
  "worked example": { query: [[1, 0, 1], [0, 1, 1]], key: [[1, 1, 0], [1, 0, 1]], value: [[2, 0, 1], [1, 1, 0]], row: 0 },
  "three tokens": { query: [[2, 1], [1, 1], [-2, 0]], key: [[1, 0], [0, 1], [2, 2]], value: [[3, 0], [0, 3], [0.5, 0.5]], row: 1 },
  "three words": { query: [[1.5, 2], [2, -1], [1, 2.5]], key: [[0.5, 0], [-1, 2], [2, 1]], value: [[0, 0.5], [1, 2], [2, -1]], row: 2 },
  "tiny value": { query: [[6.5, 0], [0, 1]], key: [[0, 1], [1, 0]], value: [[3, 4], [0.001, 0]], row: 0 },
};
const WORDS = ["the", "cat", "sat"]; // of the example with three words
const ROLES = { query: "Queries Q", key: "Keys K", value: "Values V" };
const NAMES = [...Object.keys(ROLES), "row", "scaled"];
const shown = (x) => x.toFixed(3).replace(/^-(0\.0+)$/, "$1");

function sentenceOf({ weights, output, contributions }, row, scaled) {
  const list = (numbers) => numbers.map(shown).join(", ");
  return (
    `Query ${row + 1} gives its keys the weights ${list(weights[row])} (${scaled ? "with" : "without"} scaling). ` +
    `Its output is ${list(output[row])}. The keys contribute vectors of length ${list(contributions[row])}.`
  );
}

// Two bars a key: its weight, and its share of the lengths of what the keys contribute.
function bars([x, y, width], { weights, contributions }, row) {
  const node = svg("g", {}, text(x, y, `query ${row + 1}: weight, and share of the lengths`));
  const total = contributions[row].reduce((a, b) => a + b, 0) || 1;
  const room = width - 150; // the rest is for words
  weights[row].forEach((w, j) => {
    const top = y + 14 + j * 52;
    node.append(text(x, top + 24, `k${j + 1}`));
    [["weights", w, "weight"], ["value", contributions[row][j] / total, "share"]].forEach(([colour, part, name], i) => {
      const bar = { x: x + 28, y: top + i * 21, width: Math.max(part * room, 1), height: 17, rx: 3, fill: `var(--${colour})` };
      node.append(svg("rect", bar), text(x + 36 + part * room, top + 13 + i * 21, `${shown(part)} ${name}`));
    });
  });
  return node;
}

// The chosen query and all keys as arrows to drag: their entries 1 and 2. What is longer along the query gets more weight.
function vectors([x, y, side], { query, key, row }, weights, names, onMove) {
  const most = Math.max(2.5, Math.ceil(Math.max(...query[row].slice(0, 2).map(Math.abs), ...key.flatMap((k) => k.slice(0, 2).map(Math.abs)))));
  const numbers = [-most, 0, most];
  const title = query[0].length > 2 ? "query and keys, entries 1 and 2: drag them" : "query and keys: drag them";
  const frame = chart({ x: [-most, most], y: [-most, most], box: [x, y, side, side], xTicks: numbers, yTicks: numbers, yLabel: title });
  const one = (name, matrix, i, called) => {
    const end = matrix[i].slice(0, 2);
    const to = (place) => onMove(name, i, place.map((c) => clamp(Math.round(4 * c) / 4, -6, 6)));
    if (Math.hypot(...end) > 0) frame.arrow([0, 0], end, { colour: name, width: name === "key" ? 1.5 + 4 * weights[i] : 3 });
    const [px, py] = frame.at(...end);
    frame.append(handle({
      x: px, y: py, colour: name, label: `tip of ${called}`, value: end[0], min: -6, max: 6, said: `(${number(end[0])}, ${number(end[1])})`,
      onMove: (...at) => to(frame.of(...at)), onStep: (right, up) => to([end[0] + right / 4, end[1] + up / 4]),
    }));
    const [dx, anchor] = px > x + side - 60 ? [-14, "end"] : [14, "start"];
    frame.append(text(px + dx, py + (name === "key" ? 5 : -8), called, { "text-anchor": anchor, class: "course-strong" }));
  };
  key.forEach((_, j) => one("key", key, j, names("k")[j]));
  one("query", query, row, names("q")[row]);
  return frame;
}

// The output as the values laid end to end, each as long as its weight makes it; its first two entries.
function path(box, value, { weights, output }, row) {
  const steps = weights[row].map((w, j) => [w * value[j][0], w * (value[j][1] ?? 0)]);
  const points = steps.reduce((ends, [a, b]) => [...ends, [ends.at(-1)[0] + a, ends.at(-1)[1] + b]], [[0, 0]]);
  const [low, high] = [Math.min(...points.flat()), Math.max(...points.flat(), 0.1)];
  const range = [low - 0.12 * (high - low), high + 0.12 * (high - low)];
  const frame = chart({ x: range, y: range, box, yLabel: `output ${row + 1} as a sum, entries 1 and 2` });
  frame.arrow([0, 0], points.at(-1), { colour: null, width: 1.5 });
  steps.forEach((_, j) => {
    frame.arrow(points[j], points[j + 1], { colour: "value" });
    const middle = points[j].map((x, c) => (x + points[j + 1][c]) / 2);
    frame.note(...middle, `${shown(weights[row][j])} v${j + 1}`, { dx: 6, dy: 16 });
  });
  return frame;
}

function fits({ query, key, value }) {
  const wide = (matrix, width) => matrix.every((vector) => vector.length === width);
  return query.length === key.length && key.length === value.length && wide(query, key[0].length) && wide(key, key[0].length) && wide(value, value[0].length);
}

export default {
  render({ model, el }) {
    const put = connect(model, el, NAMES, draw);
    const now = () => Object.fromEntries(NAMES.map((name) => [name, model.get(name)]));
    const rowOf = ({ row, query }) => Math.min(row, query.length - 1);
    const tables = Object.entries(ROLES).map(([name, title]) =>
      numberTable({
        title, values: now()[name], rows: (i) => `${name[0]}${i + 1}`, colour: name, onInput: (values) => put({ [name]: values }),
      }),
    );
    let worded = false; // whether the keys are those of words
    const switches = buttons(
      ["", () => put({ scaled: !now().scaled })],
      ["", () => put({ row: (rowOf(now()) + 1) % now().query.length })],
      ...Object.entries(EXAMPLES).map(([name, example]) => [name, () => {
        worded = name === "three words";
        put(example);
      }]),
    );
    const move = (name, i, end) => put({ [name]: now()[name].map((vector, k) => (k === i ? [...end, ...vector.slice(2)] : vector)) });
    const shownNow = () => {
      const state = now();
      const names = (letter) => state.query.map((_, i) => (worded ? WORDS[i] : `${letter}${i + 1}`));
      return { state: { ...state, row: rowOf(state) }, names, result: attend(state.query, state.key, state.value, state.scaled) };
    };
    const plane = drawing("", (width) => {
      const { state, names, result } = shownNow();
      const [count, wide] = [state.query.length, width >= 560];
      const side = wide ? Math.min(230, width / 2 - 60) : 170;
      const size = wide ? Math.min(66, (width / 2 - 70) / count) : 46;
      const [x, y] = wide ? [width / 2 + 52, 56] : [44, side + 76];
      return [
        wide ? side + 50 : y + count * size + 8,
        vectors([30, 30, side], state, result.weights[state.row], names, move),
        text(x - 36, y - 28, "weights: query down, key across"),
        heatMap({
          values: result.weights, rows: names("q"), columns: names("k"), box: [x, y], size: [wide ? size : 66, size],
          show: (w, i, j) => (wide ? [shown(w), `s ${number(result.scores[i][j])}`] : [shown(w)]), chosen: state.row, onChoose: (row) => put({ row }),
        }),
      ];
    });
    const figure = drawing("", (width) => {
      const { state, result } = shownNow();
      const [{ row }, lines] = [state, 14 + state.query.length * 52];
      const wide = width >= 560;
      const [side, x, y] = wide ? [Math.min(200, width / 2 - 80), width / 2 + 40, 30] : [Math.min(200, width - 90), 34, lines + 90];
      return [
        Math.max(y + side + 30, lines + 60),
        bars([0, 20, wide ? width / 2 : width], result, row),
        text(0, 20 + lines + 20, `output ${row + 1} = (${result.output[row].map(shown).join(", ")})`, { class: "course-strong" }),
        path([x, y, side, side], state.value, result, row),
      ];
    });
    const told = sentence();

    function draw(state) {
      if (!fits(state)) return; // a kernel may set the matrices one by one
      const row = rowOf(state);
      Object.keys(ROLES).forEach((name, i) => tables[i].set(state[name]));
      const [scale, next] = switches.buttons;
      scale.innerHTML = "scaled by 1/√<i>d</i><sub>k</sub>";
      scale.setAttribute("aria-pressed", String(state.scaled));
      next.textContent = `query ${row + 1} of ${state.query.length}, show next`;
      plane.redraw();
      figure.redraw();
      const said = sentenceOf(attend(state.query, state.key, state.value, state.scaled), row, state.scaled);
      plane.describe(`The query and the keys as arrows, and a heat map of the weights. ${said}`);
      figure.describe(`Bars of weights and contributions, and the output as a sum of arrows. ${said}`);
      told.say(said);
    }

    el.append(plane, switches, row(...tables), figure, told);
    draw(now());
  },
};
