// The heads of one layer: width, parameters, multiplications and attention weights for a number of heads.

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
  const [left, room] = [8, width - 16];
  const step = room / heads;
  const cut = Math.min(2, step / 4);
  const cells = Array.from({ length: heads }, (_, h) =>
    svg("rect", { x: left + h * step, y: 30, width: step - cut, height: 26, rx: cut, fill: "var(--query)", "fill-opacity": h % 2 ? 0.6 : 1 }),
  );
  return [text(left, 20, `the ${D_MODEL} columns of one projection, cut into heads`), ...cells];
}

// Bars that compare numbers of heads at the same T: weights as a share of those of 64 heads, what goes beyond is cut
// with a mark; the other two always half as long as there is room, since no number of heads changes them.
function bars(state, width) {
  const c = cost(state);
  const most = cost({ heads: 64, T: state.T });
  const narrow = width < 480;
  const [left, room] = narrow ? [8, width - 16] : [126, width - 126 - 150];
  const lines = [
    ["parameters", c.parameters / most.parameters / 2, comma(c.parameters), "residual"],
    ["multiplications", c.products / most.products / 2, `${number(c.products / 1e9, 2)} billion`, "value"],
    ["attention weights", c.weights / most.weights, `${number(c.weights / 1e6, 1)} million`, "weights"],
  ];
  const step = narrow ? 52 : 32;
  const caption = text(8, 92 + step * lines.length, "the bars compare numbers of heads at the same T");
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

export default {
  render({ model, el }) {
    const put = connect(model, el, ["heads", "T"], draw);
    const now = () => ({ heads: model.get("heads"), T: model.get("T") });
    const count = slider({ label: "heads", min: 0, max: COUNTS.length - 1, step: 1, value: COUNTS.indexOf(now().heads), format: (i) => String(COUNTS[i]), colour: "query", onInput: (i) => put({ heads: COUNTS[i] }) });
    const length = slider({ label: "tokens T", min: 128, max: 8192, step: 128, value: now().T, format: comma, onInput: (T) => put({ T }) });
    const figure = drawing("", (width) => [width < 480 ? 260 : 200, ...columns(now(), width), ...bars(now(), width)]);
    const told = sentence();
    function draw(state) {
      count.set(COUNTS.indexOf(state.heads));
      length.set(state.T);
      figure.redraw();
      figure.describe(`The columns of a projection cut into heads, and bars of three costs. ${said(state)}`);
      told.say(said(state));
    }
    el.append(count, length, figure, told);
    draw(now());
  },
};
