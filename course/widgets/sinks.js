// Real scores of four heads as water in glasses: choose who looks, take the first token away, open the drain.

const CLOSED = -12;
const HEADS = [
  ["14.3", "14.3: the same word, earlier"],
  ["25.4", "25.4: busy on some words"],
  ["18.8", "18.8: nearly all on the first"],
  ["11.1", "11.1: mostly the word before"],
];

// The weight on each word up to the query's own, and at the end what the drain takes.
function poured({ scores, head, query, first, drain }) {
  const row = scores[head][query].map((s, j) => (j || first ? s : -Infinity));
  return softmax([...row, drain > CLOSED ? drain : -Infinity]);
}

function said(state) {
  const weights = poured(state);
  const lost = weights.pop();
  const most = weights.indexOf(Math.max(...weights));
  const gone = state.first ? "" : " without the first token";
  const end = state.drain > CLOSED ? `; the drain takes ${number(lost, 2)}` : ", and the drain is closed";
  return (
    `Head ${state.head}, word ${state.query + 1}, “${state.words[state.query]}”${gone}: the fullest glass is word ${most + 1}, ` +
    `“${state.words[most]}”, with ${number(weights[most], 2)}${end}.`
  );
}

function glasses(state, width, onChoose, onTap) {
  const weights = poured(state);
  const [top, deep, n] = [30, 130, state.words.length];
  const step = (width - 8) / (n + 1.6);
  const room = Math.min(step - 4, 34);
  const floor = top + deep;
  const nodes = [text(4, 16, "share of the water, 0 to 1")];
  const glass = (x, share, colour, there) => {
    const level = there ? Math.max(share, 0) * deep : 0;
    return [
      svg("rect", { x, y: floor - level, width: room, height: level, fill: `var(--${colour})` }),
      svg("path", { d: `M${x} ${top}V${floor}H${x + room}V${top}`, fill: "none", stroke: "currentColor", "stroke-opacity": there ? 0.9 : 0.25, "stroke-dasharray": there ? undefined : "3 3" }),
    ];
  };
  state.words.forEach((word, j) => {
    const x = 4 + j * step;
    const there = j <= state.query && (j > 0 || state.first);
    nodes.push(...glass(x, weights[j] ?? 0, "weights", there));
    if (there && weights[j] >= 0.05 && j < weights.length - 1) nodes.push(text(x + room / 2, floor - weights[j] * deep - 4, number(weights[j], 2).slice(1), { "text-anchor": "middle", class: "course-small" }));
    const look = j === state.query ? "course-strong" : undefined;
    nodes.push(text(0, 0, word, { class: look, "text-anchor": "end", transform: `translate(${x + room / 2 + 4} ${floor + 10}) rotate(-60)` }));
    const target = svg("rect", { x: x - 2, y: top, width: step, height: deep + 60, fill: "transparent", style: j ? "cursor: pointer" : undefined });
    if (j) target.addEventListener("click", () => onChoose(j));
    nodes.push(target);
  });
  const open = state.drain > CLOSED;
  const x = 4 + (n + 0.6) * step;
  nodes.push(...glass(x, weights[weights.length - 1], "one", open));
  if (open) nodes.push(text(x + room / 2, floor - weights[weights.length - 1] * deep - 4, number(weights[weights.length - 1], 2), { "text-anchor": "middle", class: "course-small" }));
  nodes.push(text(0, 0, open ? "drain" : "(closed)", { "text-anchor": "end", transform: `translate(${x + room / 2 + 4} ${floor + 10}) rotate(-60)` }));
  const tap = svg("rect", { x: x - 4, y: top, width: room + 8, height: deep + 60, fill: "transparent", style: "cursor: pointer" });
  tap.addEventListener("click", onTap);
  return [floor + 66, ...nodes, tap];
}

export default {
  render({ model, el }) {
    const names = ["head", "query", "first", "drain"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries([...names, "words", "scores"].map((name) => [name, model.get(name)]));
    const { words } = now();
    const heads = choice({ label: "layer.head", options: HEADS, value: now().head, onChange: (head) => put({ head }) });
    const looks = slider({ label: "who looks", min: 1, max: words.length - 1, step: 1, value: now().query, format: (i) => `${i + 1} ${words[i]}`, colour: "query", onInput: (query) => put({ query }) });
    const there = toggle({ label: "the first token is there", value: now().first, onChange: (first) => put({ first }) });
    const tap = slider({ label: "logit of the drain", min: CLOSED, max: 12, step: 0.5, value: now().drain, format: (x) => (x > CLOSED ? number(x, 1) : "closed"), onInput: (drain) => put({ drain }) });
    const figure = drawing("", (width) => glasses(now(), width, (query) => put({ query }), turn));
    // A click on the drain opens it at the first token's score, or closes it.
    function turn() {
      const { scores, head, query, drain } = now();
      put({ drain: drain > CLOSED ? CLOSED : Math.min(Math.max(Math.round(2 * scores[head][query][0]) / 2, CLOSED + 0.5), 12) });
    }
    const told = sentence();
    function draw() {
      const state = now();
      heads.set(state.head);
      looks.set(state.query);
      there.set(state.first);
      tap.set(state.drain);
      figure.redraw();
      figure.describe(`A glass for each word, filled to the weight on it. ${said(state)}`);
      told.say(said(state));
    }
    el.append(heads, looks, there, tap, figure, told);
    draw();
  },
};
