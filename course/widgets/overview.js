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

function curves(doublings, causal, box) {
  const frame = chart({ x: [1, 17], y: [0, 36], box, xTicks: [1, 5, 9, 13, 17], yTicks: [0, 12, 24, 36], format: (t) => `2^${t}`, xLabel: "tokens", yLabel: "how many" });
  const lengths = Array.from({ length: 17 }, (_, k) => k + 1);
  const series = [
    ["pairs", "weights", (k) => Math.log2(counts(k, causal)[1])],
    ["steps", "query", (k) => k],
    ["rounds", "value", (k) => Math.log2(k)],
  ];
  for (const [name, colour, height] of series) {
    frame.line(lengths.map((k) => [k, height(k)]), { colour });
    frame.dot(doublings, height(doublings), { colour, r: 6 });
    frame.note(12, height(12) + 1.5, name, { "text-anchor": "end" });
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
    const figure = drawing("", (room) => [300, curves(now().doublings, now().causal, [44, 30, room - 60, 215])]);
    const told = sentence();
    function draw(state) {
      length.set(state.doublings);
      mask.set(state.causal);
      figure.redraw();
      const sentenceNow = said(state.doublings, state.causal);
      figure.describe(`Three lines over the length of the text, both axes in powers of two. ${sentenceNow}`);
      told.say(sentenceNow);
    }
    el.append(length, mask, figure, told);
    draw(now());
  },
};
