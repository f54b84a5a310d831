// The parts of a GPT by size: how many parameters are where, and the shapes between them.

const V = 50257;
const D_HEAD = 64;

function sizes({ d_model, n_layers, group, gated, tied }) {
  const heads = d_model / D_HEAD;
  const kv = heads / gcd(heads, group);
  const hidden = gated ? 8 * Math.ceil(d_model / 3) : 4 * d_model;
  const parts = {
    embedding: V * d_model,
    attention: n_layers * (2 * d_model * d_model + 2 * d_model * kv * D_HEAD),
    "feed-forward": n_layers * (gated ? 3 : 2) * d_model * hidden,
    norms: (2 * n_layers + 1) * d_model,
    head: tied ? 0 : V * d_model,
  };
  return { heads, kv, hidden, parts, all: Object.values(parts).reduce((a, b) => a + b, 0) };
}

function gcd(a, b) {
  return b ? gcd(b, a % b) : a;
}

function comma(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

function said(state) {
  const { heads, kv, hidden, parts, all } = sizes(state);
  const list = Object.entries(parts).map(([name, n]) => `${name} ${comma(n)}`);
  return (
    `${state.n_layers} blocks of width ${state.d_model}: ${heads} heads of queries and ${kv} of keys and values, each ${D_HEAD} wide; ` +
    `${state.gated ? "SwiGLU" : "GELU"} with ${comma(hidden)} hidden numbers; the head is ${state.tied ? "tied" : "not tied"}. ` +
    `${comma(all)} parameters: ${list.join(", ")}.`
  );
}

// The shapes between the parts of a block, for T tokens.
function shapes(state) {
  const { heads, kv, hidden } = sizes(state);
  return [
    ["stream", `(T, ${state.d_model})`, "residual"],
    ["queries", `(${heads}, T, ${D_HEAD})`, "query"],
    ["keys, values", `(${kv}, T, ${D_HEAD})`, "key"],
    ["weights", `(${heads}, T, T)`, "weights"],
    ["hidden", `(T, ${hidden})`, "value"],
  ];
}

const COLOURS = { embedding: "residual", attention: "query", "feed-forward": "value", norms: "weights", head: "residual" };

function bars(state, width) {
  const { parts, all } = sizes(state);
  const [left, room] = [104, width - 104 - 130];
  return Object.entries(parts).flatMap(([name, n], i) => {
    const y = 8 + 30 * i;
    return [
      text(left - 8, y + 15, name, { "text-anchor": "end" }),
      svg("rect", { x: left, y, width: Math.max((room * n) / all, 1), height: 20, rx: 3, fill: `var(--${COLOURS[name]})` }),
      text(left + (room * n) / all + 8, y + 15, `${comma(n)} · ${number((100 * n) / all, 1)}%`),
    ];
  });
}

function lines(state, width) {
  const columns = width < 480 ? 2 : 3;
  return shapes(state).flatMap(([name, shape, colour], i) => {
    const [x, y] = [8 + ((i % columns) * width) / columns, 190 + 40 * Math.floor(i / columns)];
    return [
      svg("rect", { x, y: y - 11, width: 10, height: 10, rx: 2, fill: `var(--${colour})` }),
      text(x + 16, y, name),
      text(x + 16, y + 17, shape, { class: "course-strong" }),
    ];
  });
}

export default {
  render({ model, el }) {
    const names = ["d_model", "n_layers", "group", "gated", "tied"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const whole = (x) => String(x);
    const controls = {
      d_model: slider({ label: "width d_model", min: 64, max: 2048, step: 64, value: now().d_model, format: whole, colour: "residual", onInput: (d_model) => put({ d_model }) }),
      n_layers: slider({ label: "blocks", min: 1, max: 48, step: 1, value: now().n_layers, format: whole, onInput: (n_layers) => put({ n_layers }) }),
      group: choice({ label: "heads that share a key", options: [1, 2, 4, 8].map((n) => [n, n === 1 ? "none: each has its own" : `up to ${n}`]), value: now().group, onChange: (group) => put({ group }) }),
      gated: toggle({ label: "SwiGLU, a gated network", value: now().gated, onChange: (gated) => put({ gated }) }),
      tied: toggle({ label: "tied head", value: now().tied, onChange: (tied) => put({ tied }) }),
    };
    const figure = drawing("", (width) => [width < 480 ? 300 : 260, ...bars(now(), width), ...lines(now(), width)]);
    const told = sentence();
    function draw(state) {
      for (const name of names) controls[name].set(state[name]);
      figure.redraw();
      figure.describe(`Bars of the parameters in each part, and the shapes between the parts. ${said(state)}`);
      told.say(said(state));
    }
    el.append(controls.d_model, controls.n_layers, row(controls.group, controls.gated, controls.tied), figure, told);
    draw(now());
  },
};
