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
  "tiny value": { query: [[6.5, 0], [0, 1]], key: [[0, 1], [1, 0]], value: [[3, 4], [0.001, 0]], row: 0 },
};
const ROLES = { query: "Queries Q", key: "Keys K", value: "Values V" };
const shown = (x) => x.toFixed(3).replace(/^-(0\.0+)$/, "$1");

function sentence({ weights, output, contributions }, row, scaled) {
  const list = (numbers) => numbers.map(shown).join(", ");
  return (
    `Query ${row + 1} gives its keys the weights ${list(weights[row])} (${scaled ? "with" : "without"} the factor 1/√d_k). ` +
    `Its output is ${list(output[row])}. The keys contribute vectors of length ${list(contributions[row])}.`
  );
}

function heatMap(x, y, size, rows, weights, scores, chosen, onChoose) {
  const group = svg("g");
  rows.forEach((_, i) => {
    group.append(text(x - 8, y + (i + 0.55) * size, `q${i + 1}`, { "text-anchor": "end" }));
    group.append(text(x + (i + 0.5) * size, y - 8, `k${i + 1}`, { "text-anchor": "middle" }));
    weights[i].forEach((w, j) => {
      const [left, top] = [x + j * size, y + i * size];
      const box = { x: left + 1, y: top + 1, width: size - 2, height: size - 2, rx: 4 };
      group.append(svg("rect", { ...box, fill: "var(--weights)", "fill-opacity": 0.08 + 0.55 * w }));
      group.append(text(left + size / 2, top + size / 2, shown(w), { "text-anchor": "middle", "font-weight": "bold" }));
      group.append(text(left + size / 2, top + size / 2 + 17, `s ${scores[i][j].toFixed(2)}`, { "text-anchor": "middle", opacity: 0.85 }));
    });
    const whole = { x, y: y + i * size, width: size * weights[i].length, height: size, rx: 4, fill: "transparent" };
    const row = svg("rect", { ...whole, stroke: i === chosen ? "var(--query)" : "none", "stroke-width": 3, style: "cursor:pointer" });
    row.addEventListener("click", () => onChoose(i));
    group.append(row);
  });
  return group;
}

function bars(x, y, width, { weights, contributions }, row) {
  const group = svg("g");
  const total = contributions[row].reduce((a, b) => a + b, 0) || 1;
  group.append(text(x, y, `query ${row + 1}: weight and share of the lengths`));
  weights[row].forEach((w, j) => {
    const top = y + 14 + j * 54;
    const share = contributions[row][j] / total;
    [["var(--weights)", w, "weight"], ["var(--value)", share, "share"]].forEach(([fill, part, name], i) => {
      group.append(svg("rect", { x: x + 30, y: top + i * 21, width: Math.max(part * (width - 150), 1), height: 17, rx: 3, fill }));
      group.append(text(x + 38 + part * (width - 150), top + 13 + i * 21, `${shown(part)} ${name}`));
    });
    group.append(text(x, top + 24, `k${j + 1}`));
  });
  return group;
}

export default {
  render({ model, el }) {
    el.classList.add("course-widget");
    const get = () => ["query", "key", "value", "row", "scaled"].map((name) => model.get(name));
    const fields = element("div", { style: "display:flex;flex-wrap:wrap;gap:1.2rem" });
    const drawing = picture(640, 250, "");
    const said = element("p", { class: "course-said", "aria-live": "polite" });
    const buttons = element("div", { style: "display:flex;flex-wrap:wrap;gap:0.5rem;align-items:center;margin:0.5rem 0" });

    const put = (changes) => {
      for (const [name, value] of Object.entries(changes)) model.set(name, value);
      model.save_changes();
    };

    let narrow;
    const isNarrow = () => el.clientWidth > 0 && el.clientWidth < 480;

    function edit() {
      fields.replaceChildren(
        ...Object.entries(ROLES).map(([name, title]) => {
          const rows = model.get(name).map((vector, i) => {
            const inputs = vector.map((x, c) => {
              const label = `${name} of token ${i + 1}, entry ${c + 1}`;
              const input = element("input", { type: "number", step: "0.5", "aria-label": label, "data-lm-suppress-shortcuts": "true" });
              input.value = x;
              input.addEventListener("input", () => {
                const number = Number(input.value);
                if (input.value === "" || !Number.isFinite(number)) return;
                const matrix = model.get(name).map((row) => [...row]);
                matrix[i][c] = Math.min(Math.max(number, -1000), 1000);
                put({ [name]: matrix });
              });
              return input;
            });
            return element("div", { style: "display:flex;gap:0.25rem;margin:0.2rem 0" }, ...inputs);
          });
          const heading = element("div", { style: `border-bottom:3px solid var(--${name});margin-bottom:0.3rem` }, title);
          return element("div", { role: "group", "aria-label": title }, heading, ...rows);
        }),
      );
    }

    function draw() {
      const [query, key, value, row, scaled] = get();
      const result = attend(query, key, value, scaled);
      const chosen = Math.min(row, query.length - 1);
      const size = query.length > 2 ? 62 : 80;
      narrow = isNarrow(); // on a telephone the bars stand under the map
      const [x, y] = narrow ? [10, 34 + size * query.length + 34] : [270, 28];
      drawing.setAttribute("viewBox", narrow ? `0 0 340 ${y + 225}` : "0 0 640 250");
      drawing.replaceChildren(
        heatMap(34, 34, size, query, result.weights, result.scores, chosen, (i) => put({ row: i })),
        bars(x, y, narrow ? 330 : 370, result, chosen),
        text(x, y + 210, `output ${chosen + 1}: (${result.output[chosen].map(shown).join(", ")})`, { "font-weight": "bold" }),
      );
      said.textContent = sentence(result, chosen, scaled);
      drawing.describe(said.textContent);
      scale.textContent = scaled ? "scaled by 1/√d_k" : "not scaled";
      scale.setAttribute("aria-pressed", String(scaled));
      next.textContent = `query ${chosen + 1} of ${query.length}`;
    }

    const scale = element("button", { type: "button" });
    scale.addEventListener("click", () => put({ scaled: !model.get("scaled") }));
    const next = element("button", { type: "button" });
    next.addEventListener("click", () => put({ row: (model.get("row") + 1) % model.get("query").length }));
    buttons.append(scale, next);
    for (const [name, example] of Object.entries(EXAMPLES)) {
      const button = element("button", { type: "button" }, name);
      button.addEventListener("click", () => {
        put(example);
        edit();
        draw();
      });
      buttons.append(button);
    }

    for (const name of ["query", "key", "value", "row", "scaled"]) model.on(`change:${name}`, () => consistent() && draw());
    // While an example is loaded name by name, the three matrices may not fit each other for a moment.
    const consistent = () => {
      const [query, key, value] = get();
      const fits = query.length === key.length && key.length === value.length && query[0].length === key[0].length;
      const fieldsFit = fields.querySelectorAll("input").length === [query, key, value].flat(2).length;
      if (fits && !fieldsFit) edit();
      return fits;
    };

    el.replaceChildren(buttons, fields, drawing, said);
    edit();
    draw();
    if (typeof ResizeObserver !== "undefined") new ResizeObserver(() => narrow !== isNarrow() && draw()).observe(el);
  },
};
