// Steps and pairs: recurrence, scan and attention as a text grows.

// Tokens, pairs, and how many times as many pairs twice the text has.
function counts(doublings, causal) {
  const T = 2 ** doublings;
  const pairs = (n) => (causal ? (n * (n + 1)) / 2 : n * n);
  return [T, pairs(T), pairs(2 * T) / pairs(T)];
}

const grouped = (x) => x.toLocaleString("en-US");

function said(doublings, causal) {
  const [T, pairs, ratio] = counts(doublings, causal);
  return (
    `For a text of ${grouped(T)} tokens: a recurrence takes ${grouped(T)} steps in a row, a linear scan ${doublings} rounds, ` +
    `and ${causal ? "causal attention" : "attention"} compares ${grouped(pairs)} pairs. Twice the text has ${number(ratio)} times the pairs.`
  );
}

// The tokens as dots: the chain of a recurrence along them, all pairs of attention as arcs, those with later tokens below.
// The arcs of the chosen token are strong.
function graph(doublings, causal, chosen, width, onChoose) {
  const [T, all] = [2 ** doublings, counts(doublings, causal)[1]];
  const shown = Math.min(T, width < 480 ? 16 : 32);
  const gap = Math.min((width - 40) / Math.max(shown - 1, 1), 60);
  const middle = Math.min(70 + gap * shown * 0.2, 175);
  const place = (i) => 20 + i * gap;
  const token = Math.min(chosen, shown - 1);
  const node = svg("g");
  const arc = (i, j, above) => {
    const [x1, x2] = [place(i), place(j)];
    const tall = 10 + ((x2 - x1) / ((shown - 1) * gap || 1)) * (middle - 46);
    const mine = above ? j === token : i === token;
    const look = { fill: "none", stroke: "var(--weights)", "stroke-width": mine ? 2 : 0.8, "stroke-opacity": mine ? 1 : Math.max(0.15, 0.55 - shown / 70) };
    return svg("path", { d: `M${x1} ${middle}C${x1} ${middle - (above ? 1 : -0.6) * 1.33 * tall} ${x2} ${middle - (above ? 1 : -0.6) * 1.33 * tall} ${x2} ${middle}`, ...look });
  };
  for (let j = 1; j < shown; j++) for (let i = 0; i < j; i++) node.append(arc(i, j, true), ...(causal ? [] : [arc(i, j, false)]));
  for (let i = 0; i + 1 < shown; i++) node.append(arrow([place(i) + 5, middle], [place(i + 1) - 4, middle], { colour: "var(--one)", width: 2 }));
  for (let i = 0; i < shown; i++) node.append(svg("circle", { cx: place(i), cy: middle, r: 4, fill: "currentColor" }));
  const to = (i) => onChoose(clamp(Math.round(i), 0, shown - 1));
  const sees = causal ? token + 1 : shown;
  node.append(handle({
    x: place(token), y: middle, colour: "weights", label: "token", value: token + 1, min: 1, max: shown,
    said: `token ${token + 1} looks at ${sees} token${sees > 1 ? "s" : ""}`, onMove: (x) => to((x - 20) / gap), onStep: (right, up) => to(token + right + up),
  }));
  const height = middle + (causal ? 22 : 0.6 * (middle - 36) + 22);
  const rest = T > shown ? `, of the first ${shown} tokens drawn` : "";
  const looks = width < 480 ? "" : `; token ${token + 1} looks at ${sees}`;
  node.append(
    text(0, 14, `attention: ${grouped(all)} pairs${rest}${looks}`, { class: "course-strong", style: "fill: var(--weights)" }),
    text(0, height + 6, `recurrence: ${grouped(T)} steps, one after the other`, { class: "course-strong", style: "fill: var(--one)" }),
  );
  return [height + 14, node];
}

function curves(doublings, causal, box) {
  const format = (t) => power(t, 2);
  const frame = chart({ x: [1, 17], y: [0, 36], box, xTicks: [1, 5, 9, 13, 17], yTicks: [0, 12, 24, 36], format, xLabel: "tokens", yLabel: "how many" });
  const lengths = Array.from({ length: 17 }, (_, k) => k + 1);
  const series = [
    ["pairs", "weights", (k) => Math.log2(counts(k, causal)[1])],
    [box[2] < 400 ? "steps" : "steps of a recurrence", "one", (k) => k],
    [box[2] < 400 ? "rounds" : "rounds of a scan", "two", (k) => Math.log2(k)],
  ];
  for (const [name, colour, height] of series) {
    frame.line(lengths.map((k) => [k, height(k)]), { colour });
    frame.dot(doublings, height(doublings), { colour, r: 5 });
    frame.note(16.8, height(16.8), name, { "text-anchor": "end", dy: name === "pairs" ? -14 : -8, style: `fill: var(--${colour})`, class: "course-strong" });
  }
  return frame;
}

export default {
  render({ model, el }) {
    const names = ["doublings", "causal"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const length = slider({ label: "tokens", min: 1, max: 17, step: 1, value: now().doublings, format: (k) => grouped(2 ** k), onInput: (doublings) => put({ doublings }) });
    const mask = toggle({ label: "causal: no token sees the future", value: now().causal, onChange: (causal) => put({ causal }) });
    let chosen = 5;
    const figure = drawing("", (width) => {
      const { doublings, causal } = now();
      const [height, tokens] = graph(doublings, causal, chosen, width, (token) => {
        chosen = token;
        figure.redraw();
      });
      const tall = width < 480 ? 110 : 165;
      return [height + tall + 90, tokens, curves(doublings, causal, [44, height + 42, width - 60, tall])];
    });
    const told = sentence();
    function draw(state) {
      length.set(state.doublings);
      mask.set(state.causal);
      figure.redraw();
      const sentenceNow = said(state.doublings, state.causal);
      figure.describe(`The tokens in a row with the chain of a recurrence and the pairs of attention, and three lines over the length of the text. ${sentenceNow}`);
      told.say(sentenceNow);
    }
    el.append(figure, length, mask, told);
    draw(now());
  },
};
