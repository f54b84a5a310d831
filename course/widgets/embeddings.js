// Three words, a − b + c, and what comes nearest: the arithmetic of course/widgets/embeddings.py.

const SHOWN = 8; // bars

// The nearest words and their cosines, from the inner products of all words in thousandths.
function ranked({ words, products, a, b, c, exclude }) {
  const [i, j, k] = [a, b, c].map((word) => words.indexOf(word));
  const along = products.map((row) => row[i] / 1000 - row[j] / 1000 + row[k] / 1000);
  const length = Math.sqrt(Math.max(along[i] - along[j] + along[k], 1e-9));
  const order = words.map((_, w) => w).sort((v, w) => along[w] - along[v] || v - w);
  const kept = order.filter((w) => !(exclude && [i, j, k].includes(w)));
  return kept.slice(0, SHOWN).map((w) => [words[w], along[w] / length]);
}

function said(state) {
  const { words, a, b, c, exclude } = state;
  const [best, cosine] = ranked(state)[0];
  const kind = [a, b, c].includes(best) ? "one of the three" : "a new word";
  const rule = exclude ? "with the three left out" : "with all words allowed";
  return `${a} − ${b} + ${c}, ${rule}: nearest of ${words.length} words is ${best}, ${kind}, with the cosine ${number(cosine)}.`;
}

const LINE = 26; // pixels for a bar

function bars(state, [left, top, width], count) {
  const room = width - 128;
  return ranked(state).slice(0, count).flatMap(([word, cosine], row) => {
    const y = top + row * LINE;
    const given = [state.a, state.b, state.c].includes(word);
    const size = Math.max(cosine, 0) * room;
    return [
      text(left + 82, y + 16, word, { "text-anchor": "end" }),
      svg("rect", { x: left + 90, y, width: size, height: LINE - 7, rx: 3, fill: `var(--${given ? "two" : "one"})` }),
      text(left + 96 + size, y + 16, number(cosine)),
    ];
  });
}

// Places in the plane through a, b and c with b as its origin and a − b to the right: of a word, or of a sum of words, given as
// [[index, factor], …]. What lies outside the plane is seen in it as its shadow.
function plane({ words, products, a, b, c }) {
  const [i, j, k] = [a, b, c].map((word) => words.indexOf(word));
  const dot = (x, y) => x.reduce((sum, [u, f]) => sum + y.reduce((inner, [v, g]) => inner + (f * g * products[u][v]) / 1000, 0), 0);
  const [first, second] = [[[i, 1], [j, -1]], [[k, 1], [j, -1]]];
  const long = Math.sqrt(Math.max(dot(first, first), 1e-9));
  const along = dot(second, first) / long;
  const high = Math.sqrt(Math.max(dot(second, second) - along ** 2, 1e-9));
  return (point) => {
    const from = [...point, [j, -1]];
    const x = dot(from, first) / long;
    return [x, (dot(from, second) - along * x) / high];
  };
}

// The arrow from b to a, the same arrow laid at c, and the nearest words where they fall in that plane.
function analogy(state, [left, top, width, height]) {
  const { words, a, b, c } = state;
  const at = plane(state);
  const [i, j, k] = [a, b, c].map((word) => words.indexOf(word));
  const end = at([[i, 1], [j, -1], [k, 1]]);
  const near = ranked(state).slice(0, 5).map(([word]) => word).filter((word) => ![a, b, c].includes(word));
  const places = new Map([...new Set([b, a, c, ...near])].map((word) => [word, at([[words.indexOf(word), 1]])]));
  const all = [...places.values(), end];
  const ends = [0, 1].map((e) => [Math.min(...all.map((p) => p[e])), Math.max(...all.map((p) => p[e]), 0.1)]);
  const scale = Math.min((width - 110) / (ends[0][1] - ends[0][0]), (height - 44) / (ends[1][1] - ends[1][0]));
  const spare = (width - scale * (ends[0][1] - ends[0][0])) / 2;
  const pixels = ([x, y]) => [left + spare + scale * (x - ends[0][0]), top + height - 22 - scale * (y - ends[1][0])];
  const node = svg("g");
  const [from, to, start, tip] = [places.get(b), places.get(a), places.get(c), end].map(pixels);
  for (const [p, q] of [[from, start], [to, tip]]) node.append(svg("line", { x1: p[0], y1: p[1], x2: q[0], y2: q[1], class: "course-axis", "stroke-dasharray": "3 4" }));
  node.append(arrow(from, to, { colour: "var(--two)", width: 3 }), arrow(start, tip, { colour: "var(--one)", width: 3 }));
  node.append(svg("circle", { cx: tip[0], cy: tip[1], r: 9, fill: "none", stroke: "var(--one)", "stroke-width": 2 }));
  const lines = []; // of labels, so that none lies on another
  for (const [word, place] of places) {
    const [x, y] = pixels(place);
    const given = [a, b, c].includes(word);
    const [u, anchor] = given ? [x, "middle"] : [x + 26, "start"];
    let v = given ? (word === b || word === a ? y + 19 : y - 9) : y + 5;
    while (lines.some(([p, q]) => Math.abs(p - u) < 74 && Math.abs(q - v) < 16)) v += 4;
    lines.push([u, v]);
    if (!given) node.append(svg("line", { x1: x, y1: y, x2: u - 4, y2: v - 5, class: "course-axis" }));
    node.append(svg("circle", { cx: x, cy: y, r: given ? 5 : 4, fill: given ? "var(--two)" : "var(--one)" }));
    node.append(text(u, v, word, { "text-anchor": anchor, class: given ? "course-strong" : undefined }));
  }
  return node;
}

export default {
  render({ model, el }) {
    const names = ["words", "products", "a", "b", "c", "exclude"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const options = now().words.map((word) => [word, word]);
    const picks = [["a", "start from a"], ["b", "subtract b"], ["c", "add c"]].map(([name, label]) =>
      choice({ label, options, value: now()[name], onChange: (word) => put({ [name]: word }) }),
    );
    const rule = toggle({ label: "leave out the three words", value: now().exclude, onChange: (exclude) => put({ exclude }) });
    const figure = drawing("", (width) => {
      const state = now();
      const title = text(0, 14, `the arrow from ${state.b} to ${state.a}, laid at ${state.c}`);
      if (width < 560) return [360, title, analogy(state, [0, 20, width, 190]), ...bars(state, [0, 222, width], 5)];
      const half = 0.55 * width;
      return [SHOWN * LINE + 34, title, analogy(state, [0, 20, half, SHOWN * LINE]), ...bars(state, [half + 10, 28, width - half - 10], SHOWN)];
    });
    const told = sentence();
    function draw(state) {
      picks.forEach((pick, i) => pick.set(state["abc"[i]]));
      rule.set(state.exclude);
      figure.redraw();
      const list = ranked(state).map(([word, cosine]) => `${word} ${number(cosine)}`).join(", ");
      figure.describe(`The arrow from ${state.b} to ${state.a} laid at ${state.c}, and bars of the cosines of the nearest words: ${list}.`);
      told.say(said(state));
    }
    el.append(figure, row(...picks), rule, told);
    draw(now());
  },
};
