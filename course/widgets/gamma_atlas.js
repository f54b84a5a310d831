// The atlas with free axes: each dot is a model; drag over some of them to read their settings.

const AXES = {
  gamma: "γ, distances 4 to 128", gamma_relative: "γ, distances T/64 to T/2", gamma_pade: "γ_Padé of base and length",
  gamma_untrained: "γ before training", gamma_shuffled: "γ on shuffled tokens", heads_50: "γ of the median head",
  theta: "base θ", T: "length T", text: "text", n_layers: "blocks", d_model: "width", tokens: "tokens trained on", seed: "seed",
  bits: "bits a byte", R2_power: "R² of the power law", first: "weight on the first token", entropy: "entropy, nats",
};
const LOGARITHMIC = ["theta", "T", "n_layers", "d_model", "tokens"];
const SETTINGS = ["text", "theta", "T", "n_layers", "d_model", "n_heads", "position", "mark", "tokens", "rate"];
const HUES = ["one", "two", "three", "four", "right", "wrong"];
// After six kinds come rings in the same colours.
const look = (kind) => (kind < HUES.length ? `fill: var(--${HUES[kind]})` : `fill: none; stroke: var(--${HUES[kind % HUES.length]}); stroke-width: 2`);
const SIDES = { left: 0, right: 1, bottom: 2, top: 3 };

// Where a column's values stand: a function from value to place, the ends, and ticks with their names.
function scale(models, name) {
  const values = models.map((model) => model[name]);
  const logarithmic = LOGARITHMIC.includes(name);
  const discrete = logarithmic || typeof values[0] === "string";
  const kinds = [...new Set(values)].sort((a, b) => (typeof a === "string" ? String(a).localeCompare(b) : a - b));
  const place = typeof values[0] === "string" ? (v) => kinds.indexOf(v) : logarithmic ? Math.log10 : (v) => v;
  const [low, high] = [Math.min(...values.map(place)), Math.max(...values.map(place))];
  const room = 0.06 * (high - low || 1);
  const ends = [low - room, high + room];
  return { place, ends, ticks: discrete ? kinds.map(place) : undefined, names: new Map(kinds.map((v) => [place(v), short(v)])), discrete, words: typeof values[0] === "string" };
}

function short(value) {
  if (typeof value !== "number") return String(value).replaceAll("_", " ");
  const exponent = Math.log10(value);
  return value >= 1e4 && Math.abs(exponent - Math.round(exponent)) < 1e-9 ? power(Math.round(exponent)) : String(value);
}

// The models whose dots lie in a brush of shares [left, right, bottom, top] of the frame.
function brushed({ models, x, y, brush }) {
  const within = (name, low, high) => {
    const { place, ends } = scale(models, name);
    return (model) => {
      const share = (place(model[name]) - ends[0]) / (ends[1] - ends[0]);
      return share >= low && share <= high;
    };
  };
  const [inX, inY] = [within(x, brush[0], brush[1]), within(y, brush[2], brush[3])];
  return models.filter((model) => inX(model) && inY(model));
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

function said(state) {
  const chosen = brushed(state);
  const head = `${chosen.length} of ${state.models.length} models`;
  if (!chosen.length) return `${head} are in the brush.`;
  const settings = SETTINGS.map((name) => [name, [...new Set(chosen.map((model) => String(model[name])))]]);
  const same = settings.filter(([, values]) => values.length === 1).map(([name, [value]]) => `${name} ${value}`);
  const free = settings.filter(([, values]) => values.length > 1).map(([name, values]) => `${name} (${values.length})`);
  const gammas = chosen.map((model) => model.gamma);
  return (
    `${head}: γ from ${number(Math.min(...gammas))} to ${number(Math.max(...gammas))}, median ${number(median(gammas))}. ` +
    `Alike in ${same.join(", ") || "nothing"}; different in ${free.join(", ") || "the seed only"}.`
  );
}

function plot(state, box) {
  const [across, up] = [scale(state.models, state.x), scale(state.models, state.y)];
  const names = new Map([...(across.discrete ? across.names : []), ...(up.discrete ? up.names : [])]);
  const frame = chart({
    x: across.ends, y: up.ends, box, xLabel: across.words ? "" : AXES[state.x], yLabel: AXES[state.y],
    xTicks: across.words ? [] : (across.ticks ?? ticks(...across.ends)), yTicks: up.ticks ?? ticks(...up.ends, 4), format: (t) => names.get(t) ?? String(t),
  });
  for (const [t, name] of across.words ? across.names : []) {
    const [x, y] = [frame.at(t, 0)[0], box[1] + box[3] + 14];
    frame.append(text(x, y, name, { "text-anchor": "end", transform: `rotate(-35 ${x} ${y})`, class: "course-small" }));
  }
  const [left, right, bottom, top] = state.brush;
  const [l, t, w, h] = box;
  frame.append(svg("rect", { x: l + left * w, y: t + (1 - top) * h, width: Math.max(0, right - left) * w, height: Math.max(0, top - bottom) * h, fill: "currentColor", "fill-opacity": 0.1 }));
  const kinds = [...scale(state.models, state.colour).names.values()];
  const inside = new Set(brushed(state));
  for (const model of state.models) {
    const kind = kinds.indexOf(short(model[state.colour]));
    const dot = frame.dot(across.place(model[state.x]), up.place(model[state.y]), { r: 4.5 });
    dot.setAttribute("style", look(kind));
    dot.setAttribute("opacity", inside.has(model) ? 0.9 : 0.2);
    dot.append(svg("title", {}, `${SETTINGS.map((name) => `${name} ${model[name]}`).join(", ")}, seed ${model.seed}: γ ${number(model.gamma)}`));
  }
  const columns = w > 400 ? 4 : 2;
  const legend = kinds.slice(0, 8).map((kind, i) => {
    const [cx, cy] = [l + (i % columns) * (w / columns) + 6, t + h + 88 + 20 * Math.floor(i / columns)];
    return svg("g", {}, svg("circle", { cx, cy, r: 5, style: look(i), class: "course-dot" }), text(cx + 10, cy + 5, kind, { class: "course-small" }));
  });
  frame.append(...legend);
  return frame;
}

export default {
  render({ model, el }) {
    const names = ["models", "x", "y", "colour", "brush"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const there = Object.entries(AXES).filter(([name]) => now().models.length && name in now().models[0]);
    const kinds = there.filter(([name]) => ["text", "theta", "T", "n_layers", "d_model", "tokens", "seed"].includes(name));
    const choose = (name, label, options) => choice({ label, options, value: now()[name], onChange: (value) => put(name === "colour" ? { colour: value } : { [name]: value, brush: [0, 1, 0, 1] }) });
    const picks = { x: choose("x", "across", there), y: choose("y", "up", there), colour: choose("colour", "colour", kinds) };
    const side = (name) => slider({ label: `brush, ${name}`, min: 0, max: 1, step: 0.01, value: now().brush[SIDES[name]], format: (v) => `${Math.round(100 * v)}%`, onInput: (v) => put({ brush: now().brush.map((old, i) => (i === SIDES[name] ? v : old)) }) });
    const sliders = Object.fromEntries(Object.keys(SIDES).map((name) => [name, side(name)]));
    let box = [0, 0, 1, 1];
    const figure = drawing("", (room) => [470, plot(now(), (box = [now().y === "text" ? 130 : 76, 30, room - (now().y === "text" ? 146 : 92), 270]))]);
    figure.style.touchAction = "pan-y";
    figure.addEventListener("pointerdown", (down) => {
      const share = (event) => {
        const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(figure.getScreenCTM().inverse());
        return [(at.x - box[0]) / box[2], 1 - (at.y - box[1]) / box[3]].map((v) => Math.round(100 * Math.min(1, Math.max(0, v))) / 100);
      };
      const [x0, y0] = share(down);
      const move = (event) => {
        const [x1, y1] = share(event);
        put({ brush: [Math.min(x0, x1), Math.max(x0, x1), Math.min(y0, y1), Math.max(y0, y1)] });
      };
      const stop = () => window.removeEventListener("pointermove", move);
      window.addEventListener("pointermove", move);
      for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, stop, { once: true });
    });
    const all = buttons(["all models", () => put({ brush: [0, 1, 0, 1] })]);
    const told = sentence();
    function draw(state) {
      for (const name of ["x", "y", "colour"]) picks[name].set(state[name]);
      for (const [name, i] of Object.entries(SIDES)) sliders[name].set(state.brush[i]);
      figure.redraw();
      figure.describe(`A dot for each model, ${AXES[state.x]} across and ${AXES[state.y]} up, coloured by ${AXES[state.colour]}. ${said(state)}`);
      told.say(said(state));
    }
    const fold = element("details", {}, element("summary", {}, "Move the brush by keyboard"), ...Object.values(sliders));
    el.append(row(picks.x, picks.y, picks.colour, all), figure, told, fold);
    draw(now());
  },
};
