// Paint a mask of six tokens: which position can know which token after one, two or three layers?

const T = 6;
const PLACES = Array.from({ length: T }, (_, i) => i);

const PRESETS = {
  bidirectional: () => 1,
  causal: (i, j) => j <= i,
  "prefix of 3": (i, j) => j <= i || j < 3,
  "window of 2": (i, j) => j === i || j === i - 1,
  "all but itself": (i, j) => i !== j,
};

function painted(rule) {
  return PLACES.map((i) => PLACES.map((j) => Number(rule(i, j))));
}

// A position knows what those know whom it sees, and, with the residual stream, what it knew.
function reach(mask, n_layers, residual) {
  const step = mask.map((row, i) => row.map((x, j) => x === 1 || (residual && i === j)));
  let known = step;
  for (let layer = 1; layer < n_layers; layer++) {
    const before = known;
    known = step.map((row) => PLACES.map((j) => row.some((sees, k) => sees && before[k][j])));
  }
  return known;
}

function said({ mask, n_layers, residual }) {
  const known = reach(mask, n_layers, residual);
  const pairs = PLACES.flatMap((i) => PLACES.map((j) => [i, j]));
  const connected = pairs.filter(([i, j]) => known[i][j]);
  const indirect = connected.filter(([i, j]) => !mask[i][j]);
  const first = indirect.length ? ` The first of these: position ${indirect[0][0]} knows token ${indirect[0][1]}.` : "";
  return (
    `Painted: ${mask.flat().filter(Boolean).length} of ${T * T} pairs. After ${n_layers} layer${n_layers > 1 ? "s" : ""}, ` +
    `${residual ? "with" : "without"} the residual stream, ${connected.length} pairs are connected, ${indirect.length} of them not painted.${first}`
  );
}

// A table of buttons, one tab stop: arrows move, space and Enter paint.
function painter(mask, onPaint) {
  let at = [0, 0];
  const cells = PLACES.map((i) => PLACES.map((j) => element("button", { type: "button", class: "course-cell", "aria-label": `position ${i} sees token ${j}`, tabindex: -1 })));
  const go = (i, j) => {
    cells[at[0]][at[1]].tabIndex = -1;
    at = [i, j];
    cells[i][j].tabIndex = 0;
  };
  cells.forEach((row, i) =>
    row.forEach((cell, j) => {
      cell.addEventListener("click", () => {
        go(i, j);
        onPaint(i, j);
      });
      cell.addEventListener("keydown", (event) => {
        const [di, dj] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
        if (di === undefined) return;
        event.preventDefault();
        go((i + di + T) % T, (j + dj + T) % T);
        cells[at[0]][at[1]].focus();
      });
    }),
  );
  const caption = element("caption", {}, "May see: position ↓, token →");
  const node = gridOf(cells.map((row) => row.map((cell) => element("td", {}, cell))), caption, "--of: var(--one)");
  node.set = (now) =>
    cells.forEach((row, i) =>
      row.forEach((cell, j) => {
        cell.setAttribute("aria-pressed", now[i][j] === 1);
        cell.style.background = now[i][j] ? "var(--one)" : "";
      }),
    );
  go(0, 0);
  node.set(mask);
  return node;
}

// What can be known, as a table that stands in line with the painted one.
function knownTable() {
  const cells = PLACES.map(() => PLACES.map(() => element("td", {}, element("span", { class: "course-cell" }))));
  const caption = element("caption", {}, "Can know: ● painted, ○ by others");
  const node = gridOf(cells, caption, "--of: var(--two)");
  node.set = (state) => {
    const known = reach(state.mask, state.n_layers, state.residual);
    cells.forEach((row, i) =>
      row.forEach((cell, j) => {
        const [direct, indirect] = [known[i][j] && state.mask[i][j], known[i][j] && !state.mask[i][j]];
        cell.firstChild.textContent = direct ? "●" : indirect ? "○" : "";
        cell.firstChild.style.background = known[i][j] ? `color-mix(in srgb, var(--two) ${direct ? 45 : 20}%, transparent)` : "";
      }),
    );
  };
  return node;
}

function gridOf(cells, caption, style) {
  const top = element("tr", {}, element("td"), ...PLACES.map((j) => element("th", { scope: "col", style: "text-align: center" }, `${j}`)));
  const rows = cells.map((row, i) => element("tr", {}, element("th", { scope: "row" }, `${i}`), ...row));
  return element("table", { class: "course-numbers course-grid-table", style }, caption, element("tbody", {}, top, ...rows));
}

export default {
  render({ model, el }) {
    const names = ["mask", "n_layers", "residual"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const flipped = (i, j) => now().mask.map((row, r) => row.map((x, c) => (r === i && c === j ? 1 - x : x)));
    const table = painter(now().mask, (i, j) => put({ mask: flipped(i, j) }));
    const presets = buttons(...Object.entries(PRESETS).map(([name, rule]) => [name, () => put({ mask: painted(rule) })]));
    const layers = slider({ label: "layers", min: 1, max: 3, step: 1, value: now().n_layers, format: String, onInput: (n_layers) => put({ n_layers }) });
    const keeps = toggle({ label: "residual stream: a position keeps what it knew", value: now().residual, onChange: (residual) => put({ residual }) });
    const known = knownTable();
    const told = sentence();
    function draw(state) {
      table.set(state.mask);
      layers.set(state.n_layers);
      keeps.set(state.residual);
      known.set(state);
      told.say(said(state));
    }
    el.append(element("div", { class: "course-sides" }, table, known), presets, layers, keeps, told);
    draw(now());
  },
};
