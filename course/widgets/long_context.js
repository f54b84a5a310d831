// A hidden key by length and depth: tap a cell, choose a method.

const FLOOR = 0.5;
const Z = 1.959964;

function wilson(right, trials) {
  const share = right / trials;
  const middle = (share + (Z * Z) / (2 * trials)) / (1 + (Z * Z) / trials);
  const half = (Z / (1 + (Z * Z) / trials)) * Math.sqrt((share * (1 - share)) / trials + (Z * Z) / (4 * trials * trials));
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

// The longest length at which, and at all before it, the interval of all depths together lies above the floor.
function effective({ found, lengths, depths, trials, method }) {
  let good = 0;
  for (const [i, length] of lengths.entries()) {
    const right = found[method][i].reduce((a, b) => a + b, 0);
    if (wilson(right, trials * depths.length)[0] <= FLOOR) break;
    good = length;
  }
  return good;
}

function grouped(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

function said(state) {
  const { found, lengths, depths, trials, method, column, row: depth } = state;
  const k = found[method][column][depth];
  const [low, high] = wilson(k, trials).map((x) => Math.round(100 * x));
  const good = effective(state);
  const ends = good ? `is ${grouped(good)} tokens` : `is below ${grouped(lengths[0])} tokens`;
  return (
    `${method}, ${grouped(lengths[column])} tokens, depth ${Math.round(100 * depths[depth])} %: ${k} of ${trials} keys found, ` +
    `Wilson's interval ${low} to ${high} %. The effective length at ${100 * FLOOR} %, all depths together, ${ends}.`
  );
}

function grid(state, width, onChoose) {
  const { found, lengths, depths, trials, method } = state;
  const [left, top, high] = [76, 44, 40];
  const wide = (width - left - 4) / lengths.length;
  const nodes = [text(4, 16, "length across, depth down; full colour: found")];
  lengths.forEach((length, i) => nodes.push(text(left + (i + 0.5) * wide, top - 8, wide < 46 ? `${length / 1024}k` : grouped(length), { "text-anchor": "middle", class: i === state.column ? "course-strong" : undefined })));
  depths.forEach((depth, j) => {
    const name = j === 0 ? "first" : j === depths.length - 1 ? "last" : `${Math.round(100 * depth)} %`;
    nodes.push(text(left - 8, top + (j + 0.5) * high + 4, name, { "text-anchor": "end", class: j === state.row ? "course-strong" : undefined }));
    lengths.forEach((_, i) => {
      const share = found[method][i][j] / trials;
      const [x, y] = [left + i * wide, top + j * high];
      const cell = svg("rect", { x: x + 1, y: y + 1, width: wide - 2, height: high - 2, fill: "var(--one)", "fill-opacity": 0.06 + 0.64 * share, style: "cursor: pointer" });
      nodes.push(cell, text(x + wide / 2, y + high / 2 + 4, `${Math.round(100 * share)}%`, { "text-anchor": "middle", style: "pointer-events: none" }));
      cell.addEventListener("click", () => onChoose(i, j));
    });
  });
  const good = effective(state);
  const edge = left + (lengths.indexOf(good) + 1) * wide;
  nodes.push(svg("path", { d: `M${edge} ${top - 4}V${top + depths.length * high + 4}`, stroke: "var(--wrong)", "stroke-width": 3, "stroke-dasharray": "6 4" }));
  const [x, y] = [left + state.column * wide, top + state.row * high];
  nodes.push(svg("rect", { x: x + 1, y: y + 1, width: wide - 2, height: high - 2, fill: "none", stroke: "currentColor", "stroke-width": 2.5 }));
  return [top + depths.length * high + 12, ...nodes];
}

export default {
  render({ model, el }) {
    const names = ["method", "column", "row"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries([...names, "found", "lengths", "depths", "trials"].map((name) => [name, model.get(name)]));
    const { found, lengths, depths } = now();
    const how = choice({ label: "method and factor", options: Object.keys(found).map((x) => [x, x]), value: now().method, onChange: (method) => put({ method }) });
    const long = slider({ label: "length", min: 0, max: lengths.length - 1, step: 1, value: now().column, format: (i) => grouped(lengths[i]), colour: "one", onInput: (column) => put({ column }) });
    const deep = slider({ label: "depth", min: 0, max: depths.length - 1, step: 1, value: now().row, format: (j) => `${Math.round(100 * depths[j])} %`, colour: "two", onInput: (at) => put({ row: at }) });
    const figure = drawing("", (width) => grid(now(), width, (column, at) => put({ column, row: at })));
    const told = sentence();
    function draw() {
      const state = now();
      how.set(state.method);
      long.set(state.column);
      deep.set(state.row);
      figure.redraw();
      figure.describe(`A grid of lengths and depths; a dashed line marks the effective length. ${said(state)}`);
      told.say(said(state));
    }
    el.append(how, long, deep, figure, told);
    draw();
  },
};
