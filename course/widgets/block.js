// A GPT whose parts can be clicked, and its parts by size: how many parameters are where, and the shapes between them.

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
    ["keys", `(${kv}, T, ${D_HEAD})`, "key"],
    ["values", `(${kv}, T, ${D_HEAD})`, "value"],
    ["weights", `(${heads}, T, T)`, "weights"],
    ["hidden", `(T, ${hidden})`, "one"],
  ];
}

// What a click on a part tells: the bar that it belongs to, its sentence, its parameters in one block and how often it is there.
function facts(state) {
  const { heads, kv, hidden, parts } = sizes(state);
  const { d_model: d, n_layers: L, gated, tied } = state;
  return {
    embedding: ["embedding", `A row of ${comma(d)} numbers for each of ${comma(V)} tokens: ids (T) become the stream (T, ${d}).`, V * d, 1],
    "first norm": ["norms", `Brings each vector of the stream to one size before attention reads it; the stream itself stays as it is.`, d, L],
    attention: ["attention", `Each token asks, by ${heads} heads, all before it for what they hold: queries (${heads}, T, ${D_HEAD}), keys and values (${kv}, T, ${D_HEAD}). The result, (T, ${d}), is added to the stream.`, parts.attention / L, L],
    "second norm": ["norms", `The same for what the feed-forward network reads.`, d, L],
    "feed-forward": ["feed-forward", `Each token by itself: (T, ${d}) to (T, ${comma(hidden)}), ${gated ? "a gate" : "GELU"}, and back to (T, ${d}). The result is added to the stream.`, parts["feed-forward"] / L, L],
    "last norm": ["norms", `Brings the stream to one size for the head.`, d, 1],
    head: [tied ? "embedding" : "head", `Compares the stream with ${tied ? "the embedding, which it shares, so it has no parameters of its own" : `a row for each token`}: (T, ${d}) to scores (T, ${comma(V)}).`, parts.head, 1],
  };
}

// A part as a button of the drawing: name, middle, width and what stands on it.
function partButton(name, [x, y, across, called], on, onChoose) {
  const button = svg("g", { role: "button", tabindex: 0, "aria-label": name, "aria-pressed": String(on), class: "course-button" },
    svg("rect", { x: x - across / 2, y: y - 16, width: across, height: 32, rx: 6, class: on ? "course-ground course-chosen" : "course-ground course-box" }),
    text(x, y + 5, called, { "text-anchor": "middle", class: on ? "course-strong" : undefined }),
  );
  button.addEventListener("click", () => onChoose(name));
  button.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onChoose(name);
  });
  return button;
}

const plus = (x, y) => svg("g", {}, svg("circle", { cx: x, cy: y, r: 10, class: "course-plus" }), text(x, y + 5, "+", { "text-anchor": "middle", class: "course-strong" }));
const bent = (d) => svg("path", { d, fill: "none", stroke: "currentColor", "stroke-width": 1.5 });
const STREAM = { colour: "var(--residual)", width: 5 };
const THIN = { width: 1.5 };

// The stream as a line from left to right, the parts that read it and add to it above.
function across({ n_layers }, width) {
  const [line, low, high] = [176, 118, 44];
  const [first, second, half, last] = [0.34 * width, 0.62 * width, 82, width - 140];
  const [left, right] = [first - half - 37, second + half + 20];
  const node = svg("g", {}, arrow([98, line], [last - 35, line], STREAM), arrow([last + 33, line], [width - 98, line], STREAM));
  for (const x of [first, second]) {
    node.append(
      arrow([x - half, line - 3], [x - half, low + 17], THIN), bent(`M${x - half} ${low - 16}V${high}H${x - 65}M${x + 64} ${high}H${x + half}V${high + 10}`),
      arrow([x + half, high], [x + half, line - 12], THIN), plus(x + half, line),
    );
  }
  node.append(
    svg("rect", { x: left, y: 10, width: right - left, height: line + 16, rx: 10, fill: "none", class: "course-axis", "stroke-dasharray": "5 5" }),
    text((left + right) / 2, line + 44, `${n_layers} blocks like this, one after the other`, { "text-anchor": "middle" }),
    text(102, line + 24, "stream", { style: "fill: var(--residual)", class: "course-strong" }),
  );
  const boxes = {
    embedding: [48, line, 96, "embedding"], "first norm": [first - half, low, 62, "norm"], attention: [first, high, 128, "attention"],
    "second norm": [second - half, low, 62, "norm"], "feed-forward": [second, high, 128, "feed-forward"],
    "last norm": [last, line, 62, "norm"], head: [width - 48, line, 96, "head"],
  };
  return [line + 56, node, boxes];
}

// The same from top to bottom, for a telephone.
function down({ n_layers }, width) {
  const [line, norm, main] = [46, 118, width - 62];
  const node = svg("g", {}, arrow([line, 36], [line, 258], STREAM), arrow([line, 294], [line, 310], STREAM));
  for (const y of [80, 168]) {
    node.append(
      arrow([line + 3, y], [norm - 29, y], THIN), arrow([norm + 28, y], [main - 53, y], THIN), bent(`M${main} ${y + 17}V${y + 44}H${line + 30}`),
      arrow([main, y + 44], [line + 12, y + 44], THIN), plus(line, y + 44),
    );
  }
  node.append(
    svg("rect", { x: 8, y: 54, width: width - 12, height: 178, rx: 10, fill: "none", class: "course-axis", "stroke-dasharray": "5 5" }),
    text(width - 6, 250, `${n_layers} blocks like this`, { "text-anchor": "end" }),
    text(102, 38, "the stream goes down", { style: "fill: var(--residual)", class: "course-strong", dy: -12 }),
  );
  const boxes = {
    embedding: [line, 20, 92, "embedding"], "first norm": [norm, 80, 54, "norm"], attention: [main, 80, 102, "attention"],
    "second norm": [norm, 168, 54, "norm"], "feed-forward": [main, 168, 102, "feed-forward"],
    "last norm": [line, 276, 58, "norm"], head: [line, 328, 92, "head"],
  };
  return [348, node, boxes];
}

function diagram(state, chosen, width, onChoose) {
  const [height, node, boxes] = (width >= 560 ? across : down)(state, width);
  return [height, node, ...Object.entries(boxes).map(([name, box]) => partButton(name, box, name === chosen, onChoose))];
}

function bars(state, chosen, width) {
  const { parts, all } = sizes(state);
  const [marked] = facts(state)[chosen];
  const [left, room] = [104, width - 104 - 130];
  return Object.entries(parts).flatMap(([name, n], i) => {
    const y = 8 + 30 * i;
    return [
      text(left - 8, y + 15, name, { "text-anchor": "end" }),
      svg("rect", { x: left, y, width: Math.max((room * n) / all, 1), height: 20, rx: 3, fill: `var(--${name === marked ? "two" : "one"})` }),
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
    let chosen = "attention";
    const map = drawing("", (width) => diagram(now(), chosen, width, (name) => {
      chosen = name;
      draw(now());
    }));
    const fact = element("p", { "aria-live": "polite" });
    const figure = drawing("", (width) => [width < 480 ? 300 : 260, ...bars(now(), chosen, width), ...lines(now(), width)]);
    const told = sentence();
    function draw(state) {
      for (const name of names) controls[name].set(state[name]);
      const [, sentenceNow, each, times] = facts(state)[chosen];
      fact.replaceChildren(element("strong", {}, chosen), ` ${sentenceNow} ${comma(each)} parameters${times > 1 ? `, ${times} times` : ""}.`);
      map.redraw();
      map.describe("A GPT as a stream from the embedding to the head, with the parts of a block above it.");
      figure.redraw();
      figure.describe(`Bars of the parameters in each part, and the shapes between the parts. ${said(state)}`);
      told.say(said(state));
    }
    el.append(part(map, fact), part(figure, controls.d_model, controls.n_layers, row(controls.group, controls.gated, controls.tied), told));
    draw(now());
  },
};
