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

const LINE = 30; // pixels for a bar

function bars(state, width) {
  const room = width - 170;
  return ranked(state).flatMap(([word, cosine], row) => {
    const y = 6 + row * LINE;
    const given = [state.a, state.b, state.c].includes(word);
    const size = Math.max(cosine, 0) * room;
    return [
      text(108, y + 17, word, { "text-anchor": "end" }),
      svg("rect", { x: 116, y, width: size, height: LINE - 8, rx: 3, fill: `var(--${given ? "wrong" : "right"})` }),
      text(122 + size, y + 17, number(cosine)),
    ];
  });
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
    const figure = drawing("", (width) => [SHOWN * LINE + 8, ...bars(now(), width)]);
    const told = sentence();
    function draw(state) {
      picks.forEach((pick, i) => pick.set(state["abc"[i]]));
      rule.set(state.exclude);
      figure.redraw();
      const list = ranked(state).map(([word, cosine]) => `${word} ${number(cosine)}`).join(", ");
      figure.describe(`Bars of the cosines of the nearest words: ${list}.`);
      told.say(said(state));
    }
    el.append(row(...picks), rule, figure, told);
    draw(now());
  },
};
