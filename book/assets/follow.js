// Follow one sentence: a chapter's stage of it, drawn when the reader comes near. Each number can be opened in the panel below:
// what it was made of, and each of those in turn, down to the weights. book/follow.py puts the library, the tokenizer and
// follow-model.js in front of this file.

const ROOM = 12; // tokens of a sentence, besides the start
const WINDOW = 32; // tokens that the model was trained to read at once
const LONGEST = 80; // letters of a sentence of one's own
const LIKELIEST = 8;
const PARTS = 150; // tokens that have a part of their own in the line from 0 to 1
const KEPT = "follow"; // in the reader's browser: { text, t, layer, head }

// A number to read: more digits where it is small.
const figure = (x) => number(x, Math.abs(x) >= 10 ? 2 : Math.abs(x) >= 0.1 ? 3 : 4);
const percent = (p) => (p > 0.0005 ? `${number(100 * p, p < 0.1 ? 1 : 0)}%` : "<0.1%");
const paint = (colour) => (colour ? `var(--${colour})` : "currentColor");
const largest = (rows) => Math.max(1e-9, ...rows.flat().map(Math.abs));
const best = (row) => row.reduce((top, x, k) => (x > row[top] ? k : top), 0);
const squareMean = (x) => Math.sqrt(dot(x, x) / x.length);

// What was chosen on another page, as far as it fits: whole numbers up to `tops`.
function remembered(text, tops) {
  let before = {};
  try {
    before = JSON.parse(localStorage.getItem(KEPT)) ?? {};
  } catch {
    // a page from a disk may have no storage
  }
  const fits = (name) => Number.isInteger(before[name]) && before[name] >= 0 && before[name] <= tops[name];
  return {
    text: typeof before.text === "string" && before.text.trim() ? before.text.slice(0, LONGEST) : text,
    t: fits("t") ? before.t : tops.t, layer: fits("layer") ? before.layer : 0, head: fits("head") ? before.head : 0,
  };
}

function keep(state) {
  try {
    localStorage.setItem(KEPT, JSON.stringify(state));
  } catch {
    // the choice then holds for this page
  }
}

// ---------------------------------------------------------------- numbers that can be touched

// A vector as bars up and down from a line: a slider over its places, of which onPick(k) gets each that is chosen.
function strip({ name, colour, values, most = largest([values]), marks = 0, onPick }) {
  const low = values.some((x) => x < 0) ? -1 : 0; // bars only upwards have all the height
  const bars = values.reduce((d, x, k) => `${d}M${k + 0.12} 0h.76v${(-Math.max(-1, Math.min(1, x / most))).toFixed(3)}h-.76z`, "");
  const lined = lines(marks ? values.length / marks - 1 : 0, (k) => svg("path", { d: `M${(k + 1) * marks} -1v2`, class: "follow-line" }));
  const mark = svg("rect", { x: -2, y: -1, width: 1, height: 2, class: "follow-mark" });
  const picture = svg("svg", { viewBox: `0 -1 ${values.length} ${low ? 2 : 1.04}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    mark, svg("path", { d: `M0 0h${values.length}`, class: "follow-line" }), ...lined, svg("path", { d: bars, fill: paint(colour) }));
  const node = element("div", {
    class: "follow-strip follow-open", role: "slider", tabindex: "-1", "aria-label": name, "aria-valuemin": 1, "aria-valuemax": values.length, "aria-valuenow": 1,
  }, picture);
  let now = 0;
  node.mark = (k) => {
    mark.setAttribute("x", k ?? -2);
    now = k ?? now;
    node.setAttribute("aria-valuenow", now + 1);
    node.setAttribute("aria-valuetext", `number ${now + 1}: ${figure(values[now])}`);
  };
  const pick = (k) => {
    node.mark(Math.max(0, Math.min(values.length - 1, k)));
    onPick(now);
  };
  const at = (event) => {
    const { left, width } = picture.getBoundingClientRect();
    return Math.floor((values.length * (event.clientX - left)) / width);
  };
  node.addEventListener("pointerdown", (event) => {
    node.setPointerCapture(event.pointerId);
    pick(at(event));
  });
  node.addEventListener("pointermove", (event) => node.hasPointerCapture(event.pointerId) && at(event) !== now && pick(at(event)));
  node.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now - 8, PageDown: now + 8, Home: 0, End: values.length - 1, Enter: now, " ": now }[event.key];
    if (to === undefined || ((to < 0 || to >= values.length) && event.key.startsWith("Arrow"))) return; // an arrow leaves at the end
    event.preventDefault();
    event.stopPropagation();
    pick(to);
  });
  node.mark();
  return node;
}

// A button whose name begins with what it shows.
function cell(shown, name, onClick, style = "") {
  const label = typeof shown === "string" ? `${shown}: ${name}` : name;
  const node = element("button", { type: "button", class: "follow-cell follow-open", tabindex: "-1", "aria-label": label, style }, shown);
  node.addEventListener("click", onClick);
  return node;
}

// Of all that can be opened one is reached by Tab; arrows lead to the nearest in their direction.
function reachedByArrows(box) {
  const all = () => [...box.querySelectorAll(".follow-open")];
  box.addEventListener("focusin", ({ target }) => target.matches(".follow-open") && all().forEach((node) => (node.tabIndex = node === target ? 0 : -1)));
  box.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step || !event.target.matches(".follow-open")) return;
    const middle = (node) => {
      const { left, top, width, height } = node.getBoundingClientRect();
      return [left + width / 2, top + height / 2];
    };
    const [x, y] = middle(event.target);
    const far = all().map((node) => {
      const [dx, dy] = [middle(node)[0] - x, middle(node)[1] - y];
      const [along, across] = step[0] ? [dx * step[0], dy] : [dy * step[1], dx];
      return { node, way: along > 4 ? along + 3 * Math.abs(across) : Infinity };
    });
    const nearest = far.reduce((a, b) => (b.way < a.way ? b : a));
    event.preventDefault();
    if (nearest.way < Infinity) nearest.node.focus();
  });
}

function line(label, ...nodes) {
  return element("div", { class: "follow-row" }, element("span", { class: "follow-label" }, label), ...nodes);
}

// ---------------------------------------------------------------- the panel: what a number was made of

function panelOf(explain) {
  const box = element("section", { class: "follow-panel", "aria-label": "The number that is open" });
  const told = sentence();
  let trail = [];

  function open(node, back = false) {
    const inside = box.contains(document.activeElement);
    if (!back) trail.push(node);
    draw(node);
    box.querySelector(".follow-open")?.setAttribute("tabindex", "0");
    if (inside) box.querySelector(back && trail.length > 1 ? ".follow-back" : ".follow-open, .follow-into, .follow-back").focus({ preventScroll: true });
  }

  function into(list, k) {
    const shown = figure(list.values[k]);
    if (!list.open) return shown;
    const button = element("button", { type: "button", class: "follow-into", "aria-label": `open ${shown}, of ${list.name}`, style: `--of: ${paint(list.colour)}` }, shown);
    button.addEventListener("click", () => open(list.open(k)));
    return button;
  }

  // What is said of place k, with what of it can be opened.
  function parts({ how, left, right, result, scale, value, root, step }, k) {
    if (how === "sum of products") {
      const products = Array.from(left.values, (x, i) => x * right.values[i]);
      const total = figure(products.reduce((a, b) => a + b, 0));
      const scaled = scale === 1 ? [] : [` ÷ √${Math.round(1 / scale ** 2)} = ${figure(value)}`];
      return [`${k + 1} of ${products.length}: `, into(left, k), " × ", into(right, k), ` = ${figure(products[k])}`, element("br"), `All ${products.length} together: ${total}`, ...scaled];
    }
    const equal = ` = ${figure(result.values[k])}`;
    if (how === "sum") return [into(left, k), " + ", into(right, k), equal];
    if (how === "swish") return ["swish(", into(left, k), ") × ", into(right, k), ` = ${figure(swish(left.values[k]))} × ${figure(right.values[k])}${equal}`];
    if (how === "norm") return [into(left, k), ` ÷ ${figure(root)} × `, into(right, k), equal, element("br"), `${figure(root)} is the root mean square of all ${left.values.length}`];
    if (how === "share") return ["e", element("sup", {}, into(left, k)), ` ÷ the sum of all ${left.values.length} such powers = ${percent(result.values[k])}`];
    return how === "byte" ? [`${number(left.values[k], 0)} × ${step.toPrecision(3)}${equal}`, element("br"), "A whole number times the step of its row. Training found them."] : ["Training found it."];
  }

  function draw(node) {
    const made = explain(node);
    const { how, left, right, result } = made;
    const summed = how === "sum of products";
    const back = element("button", { type: "button", class: "follow-back", ...(trail.length > 1 ? {} : { disabled: "" }) }, "Back");
    back.addEventListener("click", () => {
      trail.pop();
      open(trail.at(-1), true);
    });
    const [name, value, sum] = [element("span", { class: "follow-name" }), element("output"), element("p", { class: "follow-sum" })];
    const sign = { sum: "+ ", swish: "× ", norm: "× ", "sum of products": "× " }[how];
    const last = summed ? { name: "= products", values: Array.from(left.values, (x, i) => x * right.values[i]) } : { ...result, name: left ? "=" : "" };
    const shown = [left, right && { ...right, name: `${sign}${right.name}` }, last].filter(Boolean);
    const most = how === "sum" ? largest(shown.map(({ values }) => values)) : undefined;
    const strips = shown.map((each) => strip({ ...each, values: Array.from(each.values), most, onPick: pick }));
    function pick(k) {
      if (!summed) trail[trail.length - 1] = { ...node, i: k };
      const now = summed ? made : explain(trail.at(-1));
      for (const each of strips) each.mark(k);
      name.textContent = now.name;
      value.textContent = how === "share" ? percent(now.value) : figure(now.value);
      sum.replaceChildren(...parts(now, k));
      told.say(`${now.name}: ${value.textContent}. ${sum.textContent}`);
    }
    box.replaceChildren(element("div", { class: "follow-head" }, name, value, back), ...strips.map((each, i) => line(shown[i].name, each)), sum, told);
    pick(summed ? best(last.values.map(Math.abs)) : node.i);
  }

  reachedByArrows(box);
  return Object.assign(box, {
    open(node) {
      trail = [];
      open(node);
    },
  });
}

// ---------------------------------------------------------------- the stages

// Each draws its part of `run` and returns { nodes, first }: `first`, if it is there, is open at the start. `see` has the choice
// (t, layer, head), at(t), quoted(id) and named(id) for tokens in words, open(number's name, what was touched), choose({ t, layer, head }).

function vectorOf(label, values, see, made, { colour, most, marks, note = "" } = {}) {
  const bars = strip({ name: label, colour, values: Array.from(values), most, marks, onPick: (k) => see.open(made(k), bars) });
  return line(label, bars, element("span", { class: "follow-note" }, note));
}

const STAGES = {
  tokens(run, see) {
    const { spelled, merges } = run.weights;
    const id = run.ids[see.t];
    const list = element("ol", { class: "follow-tokens" }, ...run.ids.map((each, t) => {
      const box = cell(spelled[each] ? shown(spelled[each]) : "start", `${see.quoted(each)}, number ${each}`, () => see.choose({ t }));
      box.setAttribute("aria-pressed", t === see.t);
      return element("li", {}, box, element("span", {}, each));
    }));
    if (!spelled[id]) return { nodes: [list, element("p", {}, `Number ${id} has no text. It says where a text starts.`)] };
    const piece = run.pieces[see.t];
    const steps = mergeSteps(piece, rankOf(merges), merges);
    const ladder = steps.map(([ids, merge]) => element("li", {}, element("span", { class: "course-chips" }, ...ids.map((one) =>
      element("span", { class: `course-chip${merge && one === 255 + merge ? " follow-made" : ""}` }, shown(spelled[one])))), element("span", { class: "follow-note" }, merge ? `merge ${merge} of ${merges.length} makes number ${255 + merge}` : "bytes")));
    return { nodes: [list, element("p", { class: "follow-caption" }, `How “${shown([...new TextEncoder().encode(piece)])}” is put together`), element("ol", { class: "course-ladder" }, ...ladder)] };
  },

  vectors(run, see) {
    const rows = run.layers[0].before;
    const cosine = (a, b) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
    const own = rows[see.t];
    const table = run.weights.of(TABLE);
    const near = lines(table.rows, (id) => [id, cosine(own, rowOf(table, id))]).filter(([id]) => id !== run.ids[see.t]).sort((a, b) => b[1] - a[1]).slice(0, 5);
    const most = largest(rows.length > 1 ? rows.slice(1) : rows); // that of the start has a few large numbers, which are cut
    const nodes = rows.map((row, t) => vectorOf(see.at(t), row, see, (i) => ({ kind: "stream", layer: 0, t, i }), { colour: "residual", most, note: run.ids[t] }));
    nodes[see.t].classList.add("is-chosen");
    const chips = near.map(([id, near]) => element("span", { class: "course-chip" }, `${see.named(id)} ${number(near)}`));
    return {
      nodes: [...nodes, element("p", { class: "follow-caption" }, `Rows of the table nearest to that of ${see.at(see.t)}, by their cosine`), element("p", { class: "course-chips" }, ...chips)],
      first: { kind: "stream", layer: 0, t: see.t, i: 0 },
    };
  },

  positions(run, see) {
    const { layer: l, head: h, t } = see;
    const layer = run.layers[l];
    const nodes = [];
    for (const name of ["query", "key"]) {
      const [before, after] = [layer[`${name}0`][h][t], layer[name][h][t]];
      const half = before.length / 2;
      const most = Math.max(...lines(half, (i) => Math.hypot(before[i], before[i + half])));
      const hand = (x, i, look) => svg("path", { d: `M22 22L${22 + (19 * x[i]) / most} ${22 - (19 * x[i + half]) / most}`, class: look, stroke: paint(name) });
      const clocks = lines(half, (i) => {
        const angle = angleOf(run.weights.config, t, i);
        const face = svg("svg", { viewBox: "0 0 44 44", "aria-hidden": "true" }, svg("circle", { cx: 22, cy: 22, r: 20, class: "follow-face" }), hand(before, i, "follow-before"), hand(after, i, "follow-after"));
        const made = { kind: name, layer: l, head: h, t, i };
        const clock = cell(face, `pair ${i + 1} of the ${name}, turned by ${number(angle, 3)} radians`, () => see.open(made, clock));
        return element("div", { class: "follow-clock" }, clock, element("span", {}, number(angle, angle < 0.01 ? 3 : 2)));
      });
      nodes.push(element("p", { class: "follow-caption" }, `The pairs of the ${name} of ${see.at(t)}, turned by so many radians`), element("div", { class: "follow-clocks" }, ...clocks));
      for (const [kind, label, values] of [[`${name}0`, "before", before], [name, "after", after]])
        nodes.push(vectorOf(`${name} ${label}`, values, see, (i) => ({ kind, layer: l, head: h, t, i }), { colour: name, most }));
    }
    return { nodes, first: { kind: "query", layer: l, head: h, t, i: 0 } };
  },

  scores(run, see) {
    const { layer: l, head: h, t } = see;
    const layer = run.layers[l];
    const [scores, shares] = [layer.scores[h][t], layer.weights[h][t]];
    const [mostKey, mostValue] = [largest(layer.key[h]), largest(layer.value[h])];
    const part = (kind, name, values, s, colour, most) => {
      const bars = strip({ name, colour, values, most, onPick: (i) => see.open({ kind, layer: l, head: h, t: s, i }, bars) });
      return bars;
    };
    const rows = run.ids.map((_, s) => {
      if (s > t) return [element("span", { class: "follow-label follow-later" }, see.at(s)), element("span", { class: "follow-later follow-wide" }, "comes later: masked")];
      const [score, share] = ["score", "share"].map((kind) => ({ kind, layer: l, head: h, t, i: s }));
      const first = cell(number(scores[s]), `score with ${see.at(s)}`, () => see.open(score, first));
      const second = cell(percent(shares[s]), `weight of ${see.at(s)}`, () => see.open(share, second), `--share: ${100 * shares[s]}%`);
      second.classList.add("follow-share");
      return [element("span", { class: "follow-label" }, see.at(s)), part("key", `key of ${see.at(s)}`, layer.key[h][s], s, "key", mostKey), first, second,
        part("value", `value of ${see.at(s)}`, layer.value[h][s], s, "value", mostValue)];
    });
    const heads = ["", "key", "score", "weight", "value"].map((name) => element("span", { class: `follow-over${["key", "value"].includes(name) ? ` of-${name}` : name === "weight" ? " of-weights" : ""}` }, name));
    return {
      nodes: [
        vectorOf(`query of ${see.at(t)}`, layer.query[h][t], see, (i) => ({ kind: "query", layer: l, head: h, t, i }), { colour: "query" }),
        element("div", { class: "follow-scores" }, ...heads, ...rows.flat()),
        vectorOf("weighted mean", layer.mix[h][t], see, (i) => ({ kind: "mix", layer: l, head: h, t, i }), { colour: "value", most: mostValue }),
      ],
      first: { kind: "score", layer: l, head: h, t, i: best(shares) },
    };
  },

  heads: (run, see) => mapsOf(run, see, [see.layer]),
  maps: (run, see) => mapsOf(run, see, run.layers.map((_, l) => l)),

  ffn(run, see) {
    const { layer: l, t } = see;
    const layer = run.layers[l];
    const row = (label, kind, colour) => vectorOf(label, layer[kind][t], see, (i) => ({ kind, layer: l, t, i }), { colour, note: layer[kind][t].length });
    return {
      nodes: [row("normed", "norm2", "residual"), row("gate", "gate"), row("up", "up"), row("swish(gate) × up", "hidden"), row("down again", "ffn")],
      first: { kind: "hidden", layer: l, t, i: best(layer.hidden[t].map(Math.abs)) },
    };
  },

  stream(run, see) {
    const { t } = see;
    const most = largest([...run.layers.map((layer) => layer.before[t]), run.stream[t]]);
    const row = (label, values, made, colour) => vectorOf(label, values, see, (i) => ({ ...made, t, i }), { colour, most, note: number(squareMean(values)) });
    const nodes = [row("embedding", run.layers[0].before[t], { kind: "stream", layer: 0 }, "residual")];
    run.layers.forEach((layer, l) =>
      nodes.push(row(`+ attention ${l + 1}`, layer.out[t], { kind: "out", layer: l }), row(`+ feed-forward ${l + 1}`, layer.ffn[t], { kind: "ffn", layer: l }),
        row(`after block ${l + 1}`, run.layers[l + 1]?.before[t] ?? run.stream[t], { kind: "stream", layer: l + 1 }, "residual")));
    nodes.push(vectorOf("normed", run.norm[t], see, (i) => ({ kind: "norm", t, i }), { colour: "residual", note: number(squareMean(run.norm[t])) }));
    return { nodes: [element("p", { class: "follow-caption" }, "All but the last on one scale; at the right the root mean square"), ...nodes], first: { kind: "stream", layer: 1, t, i: 0 } };
  },

  block(run, see) {
    const { layer: l, t } = see;
    const layer = run.layers[l];
    const D = run.weights.config.d_head;
    const most = largest([layer.before[t], layer.middle[t]]);
    const plain = (label, kind, values = layer[kind][t], colour = "residual", scale) => vectorOf(label, values, see, (i) => ({ kind, layer: l, t, i }), { colour, most: scale });
    const heads = (label, kind, colour) => vectorOf(label, layer[kind].flatMap((rows) => rows[t]), see, (k) => ({ kind, layer: l, head: Math.floor(k / D), t, i: k % D }), { colour, marks: D });
    const after = run.layers[l + 1]?.before[t] ?? run.stream[t];
    return {
      nodes: [
        plain("stream", "stream", layer.before[t], "residual", most), plain("normed", "norm1"), heads("queries", "query", "query"), heads("keys", "key", "key"), heads("values", "value", "value"),
        heads("weighted means", "mix", "value"), plain("+ attention", "out", layer.out[t], null), plain("stream", "middle", layer.middle[t], "residual", most), plain("normed", "norm2"),
        plain("hidden", "hidden", layer.hidden[t], null), plain("+ feed-forward", "ffn", layer.ffn[t], null),
        vectorOf("stream", after, see, (i) => ({ kind: "stream", layer: l + 1, t, i }), { colour: "residual", most }),
      ],
      first: { kind: "middle", layer: l, t, i: 0 },
    };
  },

  logits(run, see) {
    const { t } = see;
    return { nodes: [candidates(run, see, run.probabilities[t])], first: { kind: "logit", t, i: best(run.logits[t]) } };
  },

  loss(run, see) {
    const nats = run.ids.slice(1).map((id, t) => -Math.log(run.probabilities[t][id]));
    const rows = nats.map((nat, t) => {
      const made = { kind: "probability", t, i: run.ids[t + 1] };
      const chance = cell(percent(run.probabilities[t][run.ids[t + 1]]), `probability of ${see.at(t + 1)} after ${see.at(t)}`, () => see.open(made, chance), `--share: ${100 * run.probabilities[t][run.ids[t + 1]]}%`);
      chance.classList.add("follow-share");
      return [element("span", { class: "follow-label" }, see.at(t + 1)), chance, element("span", { class: "follow-nats", style: `--share: ${Math.min(100, 10 * nat)}%` }, number(nat))];
    });
    const heads = ["the next token", "probability", "−ln p, nats"].map((name) => element("span", { class: "follow-over" }, name));
    const mean = nats.reduce((a, b) => a + b, 0) / nats.length;
    const told = nats.length ? `The mean is ${number(mean)} nats: a perplexity of ${number(Math.exp(mean), 1)}. Knowing nothing costs ln ${run.weights.config.V} = ${number(Math.log(run.weights.config.V))}.` : "";
    return { nodes: [element("div", { class: "follow-losses" }, ...heads, ...rows.flat()), element("p", { class: "follow-caption" }, told)], first: nats.length && { kind: "probability", t: 0, i: run.ids[1] } };
  },

  sample(run, see) {
    const t = run.ids.length - 1;
    const cooled = () => softmax(run.logits[t].map((x) => x / see.draws.heat));
    const box = element("div", {});
    const line = drawing("All tokens as parts of a line from 0 to 1, the likeliest first", (width) => [44, ...partsOf(width)]);
    const order = run.logits[t].map((x, id) => [x, id]).sort((a, b) => b[0] - a[0]).map(([, id]) => id);
    const full = run.ids.length >= WINDOW;
    function partsOf(width) {
      const chances = cooled();
      let from = 0;
      const parts = order.slice(0, PARTS).map((id, k) => {
        const part = svg("rect", { x: from * width, y: 12, width: Math.max(0, chances[id] * width - 1), height: 20, fill: paint("weights"), "fill-opacity": k % 2 ? 0.3 : 0.5 });
        const name = chances[id] * width > 44 ? [text((from + chances[id] / 2) * width, 27, see.named(id), { "text-anchor": "middle" })] : [];
        from += chances[id];
        return [part, ...name];
      });
      const rest = svg("rect", { x: from * width, y: 12, width: Math.max(0, (1 - from) * width), height: 20, class: "follow-rest" });
      return [...parts.flat(), rest];
    }
    const show = () => {
      box.replaceChildren(candidates(run, { ...see, t }, cooled(), see.draws.heat === 1));
      line.redraw();
    };
    const heat = slider({ label: "temperature τ", min: 0.1, max: 2, step: 0.1, value: see.draws.heat, format: (x) => number(x, 1), colour: "weights", onInput: (x) => {
      see.draws.heat = x;
      show();
    } });
    const draw = buttons(["Draw the next token", () => {
      const drawn = Math.random();
      const chances = cooled();
      let sum = 0;
      const id = order.find((each) => (sum += chances[each]) > drawn) ?? order[0];
      see.append(id, `${number(drawn, 3)} was drawn and fell on ${see.quoted(id)}, which had the probability ${percent(chances[id])}.`);
    }], ["Begin again", () => see.restart()]);
    draw.buttons[0].disabled = full;
    if (full) see.told.say(`The model was trained on ${WINDOW} tokens at once: here its text ends.`);
    else if (see.draws.said) see.told.say(see.draws.said);
    show();
    return { nodes: [element("p", { class: "follow-text" }, ...see.written()), heat, line, draw, see.told, box] };
  },
};

// The likeliest next tokens with their logits and probabilities.
function candidates(run, see, chances, open = true) {
  const { t } = see;
  const ids = run.logits[t].map((x, id) => [x, id]).sort((a, b) => b[0] - a[0]).slice(0, LIKELIEST).map(([, id]) => id);
  const rows = ids.map((id) => {
    const logit = cell(number(run.logits[t][id]), `logit of ${see.quoted(id)}`, () => see.open({ kind: "logit", t, i: id }, logit));
    const style = `--share: ${100 * chances[id]}%`;
    const chance = open
      ? cell(percent(chances[id]), `probability of ${see.quoted(id)}`, () => see.open({ kind: "probability", t, i: id }, chance), style)
      : element("span", { class: "follow-cell", style }, percent(chances[id]));
    chance.classList.add("follow-share");
    return [element("span", { class: "follow-label" }, see.quoted(id)), logit, chance];
  });
  const heads = [`after ${see.at(t)}`, "logit", "probability"].map((name) => element("span", { class: "follow-over" }, name));
  return element("div", { class: "follow-candidates" }, ...heads, ...rows.flat());
}

// The maps of some layers: a square for each head, its rows the tokens that look, the chosen one framed.
function mapsOf(run, see, layers) {
  const { layer: l, head: h, t } = see;
  const T = run.ids.length;
  const D = run.weights.config.d_head;
  const squares = layers.flatMap((block) => run.layers[block].weights.map((rows, head) => {
    const cells = rows.flatMap((row, i) => row.map((x, j) => svg("rect", { x: j + 0.05, y: i + 0.05, width: 0.9, height: 0.9, "fill-opacity": 0.04 + 0.96 * x, fill: paint("weights") })));
    const frame = svg("rect", { x: 0, y: t, width: t + 1, height: 1, class: "follow-frame" });
    const picture = svg("svg", { viewBox: `-0.3 -0.3 ${T + 0.6} ${T + 0.6}`, "aria-hidden": "true" }, ...cells, frame);
    const chosen = block === l && head === h;
    const label = layers.length > 1 ? `${block + 1}.${head + 1}` : `head ${head + 1}`;
    const square = element("button", { type: "button", class: "follow-map", "aria-pressed": chosen, "aria-label": `${label}: head ${head + 1} of block ${block + 1}` }, picture, element("span", {}, label));
    square.addEventListener("click", () => see.choose({ layer: block, head }));
    return square;
  }));
  const layer = run.layers[l];
  const shares = vectorOf(`weights of ${see.at(t)}`, layer.weights[h][t], see, (i) => ({ kind: "share", layer: l, head: h, t, i }), { colour: "weights", most: 1, note: `${l + 1}.${h + 1}` });
  const names = element("div", { class: "follow-names", "aria-hidden": "true" }, ...layer.weights[h][t].map((_, s) => element("span", {}, see.named(run.ids[s]))));
  const both = [
    vectorOf("side by side", layer.mix.flatMap((rows) => rows[t]), see, (k) => ({ kind: "mix", layer: l, head: Math.floor(k / D), t, i: k % D }), { colour: "value", marks: D }),
    vectorOf("output", layer.out[t], see, (i) => ({ kind: "out", layer: l, t, i })),
  ];
  return {
    nodes: [element("div", { class: "follow-maps" }, ...squares), shares, line("", names, element("span", { class: "follow-note" })), ...(layers.length > 1 ? [] : both)],
    first: layers.length > 1 ? { kind: "share", layer: l, head: h, t, i: best(layer.weights[h][t]) } : { kind: "out", layer: l, t, i: 0 },
  };
}

const OF_BLOCK = new Set(["positions", "scores", "heads", "ffn", "block"]);
const OF_HEAD = new Set(["positions", "scores"]);

// ---------------------------------------------------------------- the figure

// One of 1 to `count`, as buttons.
function levels(name, count, onChoice) {
  const group = element("div", { class: "follow-levels", role: "group", "aria-label": name }, element("span", { "aria-hidden": "true" }, name), ...lines(count, (k) => {
    const button = element("button", { type: "button" }, k + 1);
    button.addEventListener("click", () => onChoice(k));
    return button;
  }));
  group.set = (k) => group.querySelectorAll("button").forEach((button, i) => button.setAttribute("aria-pressed", i === k));
  return group;
}

function show(host, weights) {
  const { stage } = host.dataset;
  const offered = JSON.parse(host.dataset.sentences);
  const { config, spelled, merges } = weights;
  const ranks = rankOf(merges);
  const state = remembered(offered[0], { t: ROOM, layer: config.n_layers - 1, head: config.n_heads - 1 });
  let added = []; // tokens that were drawn
  let run, touched;

  const named = (id) => (spelled[id] ? shown(spelled[id]).replace(/^␣(?=.)/, "") : "start");
  const quoted = (id) => (spelled[id] ? `“${named(id)}”` : "the start");
  const at = (t) => quoted(run.ids[t]);
  const see = { named, quoted, at, open, choose, append, restart: () => read(state.text), written, told: sentence(), draws: { heat: 1, said: "" } };
  const panel = panelOf((node) => explained(run, node, quoted));
  const body = element("div", { class: "follow-stage" });
  const chips = element("div", { class: "follow-sentence", role: "group", "aria-label": "The token that is followed" });
  const note = element("p", { class: "follow-caption" }, `Only the first ${ROOM} tokens are followed.`);
  const own = field({ label: "Your sentence", value: state.text, rows: 1, onInput: (text) => text.trim() && read(text) });
  const which = choice({
    label: "Sentence", options: [...offered.map((text) => [text, text]), ["", "your own"]], value: offered.includes(state.text) ? state.text : "",
    onChange(text) {
      own.hidden = Boolean(text);
      own.set(text || state.text);
      if (text) read(text);
      else own.querySelector("textarea").select();
    },
  });
  own.hidden = offered.includes(state.text);
  own.querySelector("textarea").maxLength = LONGEST;
  chips.hidden = stage === "tokens"; // has them itself
  const blocks = levels("Block", config.n_layers, (layer) => choose({ layer }));
  const heads = levels("Head", config.n_heads, (head) => choose({ head }));

  function read(text) {
    added = [];
    see.draws.said = "";
    choose({ text, t: Infinity });
  }

  function append(id, said) {
    added.push(id);
    see.draws.said = said;
    choose({ text: state.text, t: Infinity });
  }

  function written() {
    const [first, rest] = [run.ids.slice(1, run.ids.length - added.length), added].map((ids) => new TextDecoder().decode(new Uint8Array(ids.flatMap((id) => spelled[id] ?? []))));
    return [first, element("strong", {}, rest)];
  }

  function choose(changes) {
    Object.assign(state, changes);
    if ("text" in changes) compute();
    state.t = Math.min(state.t, run.ids.length - 1);
    Object.assign(see, state);
    keep(added.length ? { ...state, t: ROOM } : state);
    draw();
  }

  function compute() {
    const pieces = piecesOf(state.text).flatMap((piece) => mergeSteps(piece, ranks, merges).at(-1)[0].map((id) => [id, piece]));
    note.hidden = pieces.length <= ROOM;
    const ids = [config.V - 1, ...pieces.slice(0, ROOM).map(([id]) => id), ...added];
    run = { ...computed(weights, ids), pieces: ["", ...pieces.map(([, piece]) => piece)] };
    chips.replaceChildren(...ids.map((id, t) => {
      const chip = element("button", { type: "button" }, named(id));
      chip.addEventListener("click", () => choose({ t }));
      return chip;
    }));
  }

  function open(node, source) {
    if (touched !== source) touched?.mark?.();
    touched?.classList.remove("is-open");
    touched = source;
    source.classList.add("is-open");
    panel.hidden = false;
    panel.open(node);
  }

  function draw() {
    [...chips.children].forEach((chip, t) => chip.setAttribute("aria-pressed", t === state.t));
    blocks.set(state.layer);
    heads.set(state.head);
    const nameOf = (node) => node.getAttribute("aria-label") ?? node.textContent;
    const focused = body.contains(document.activeElement) && nameOf(document.activeElement);
    const { nodes, first } = STAGES[stage](run, see);
    body.replaceChildren(...nodes);
    body.querySelector(".follow-open")?.setAttribute("tabindex", "0");
    if (focused) [...body.querySelectorAll("button, .follow-open")].find((node) => nameOf(node) === focused)?.focus({ preventScroll: true });
    panel.hidden = !first;
    if (first) panel.open(first);
  }

  const hint = element("p", { class: "follow-caption follow-hint" }, "Touch a bar or a number to see what it was made of.");
  hint.hidden = stage === "tokens";
  const where = row(...(OF_BLOCK.has(stage) ? [blocks] : []), ...(OF_HEAD.has(stage) ? [heads] : []));
  reachedByArrows(body);
  host.classList.add("course-widget");
  host.querySelector(".follow-words").replaceWith(row(which), own, note, chips, where, hint, body, panel);
  choose({ ...state });
}

// ---------------------------------------------------------------- loaded when it is near

const HERE = document.currentScript.src;

function brought() {
  return new Promise((done, failed) => {
    const script = element("script", { src: new URL("follow-weights.js", HERE) });
    script.addEventListener("load", () => done(unpacked(globalThis.FOLLOW_WEIGHTS)));
    script.addEventListener("error", () => failed(new Error("follow-weights.js is not there")));
    document.head.append(script);
  });
}

for (const host of document.querySelectorAll(".follow")) {
  const near = new IntersectionObserver(async (entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    near.disconnect();
    try {
      show(host, await brought());
      host.dataset.state = "alive";
      if (location.hash === `#${host.id}`) host.scrollIntoView(); // what stands above may have grown
    } catch (error) {
      host.dataset.state = "failed"; // the words stay
      console.error("follow.js:", error);
    }
  }, { rootMargin: "500px 0px" });
  near.observe(host);
}
