// The course's GPT in the page: all that course.model computes on a sentence, kept, and where each number of it comes from.
// Numbers are float64; weights are what their bytes say in float32. Shapes: T tokens, H heads of width D, d = d_model.

// The weights of follow-weights.js as matrices: { config, merges, spelled, of(name) }.
const TABLE = "embedding.weight";

function unpacked({ config, merges, parts, bytes, floats }) {
  const read = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)).buffer;
  const [whole, exact] = [new Int8Array(read(bytes)), new Float32Array(read(floats))];
  const known = Object.fromEntries(
    Object.entries(parts).map(([name, { rows, columns, from, stepFrom }]) => {
      if (!rows) return [name, { values: exact.subarray(from, from + columns), columns }];
      const [own, steps] = [whole.subarray(from, from + rows * columns), exact.subarray(stepFrom, stepFrom + rows)];
      return [name, { values: Float32Array.from(own, (x, k) => x * steps[Math.floor(k / columns)]), rows, columns, own, steps }];
    }),
  );
  return { config, merges, spelled: spell(merges), of: (name) => known[name] };
}

const rowOf = ({ values, columns }, r) => values.subarray(r * columns, (r + 1) * columns);
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const times = (x, matrix) => Array.from({ length: matrix.rows }, (_, r) => dot(x, rowOf(matrix, r))); // x (columns) → (rows)
const plus = (a, b) => a.map((x, i) => x + b[i]);
const swish = (x) => x / (1 + Math.exp(-x));
const rms = (x, eps) => Math.sqrt(dot(x, x) / x.length + eps);
const normed = (x, { values }, eps) => x.map((a, i) => (values[i] * a) / rms(x, eps));
const lines = (count, make) => Array.from({ length: count }, (_, i) => make(i));

// RoPE's angle of pair i at a position.
const angleOf = ({ theta, d_head }, position, i) => position * theta ** ((-2 * i) / d_head);

function turned(x, position, config) {
  const half = x.length / 2;
  return x.map((a, i) => {
    const angle = angleOf(config, position, i % half);
    return i < half ? a * Math.cos(angle) - x[i + half] * Math.sin(angle) : x[i - half] * Math.sin(angle) + a * Math.cos(angle);
  });
}

// A whole run, layer by layer. Of each layer: `before` (the stream that it reads), norm1, query0 and key0 (before RoPE), query, key,
// value, scores, weights, mix [H][T][…], out, middle, norm2, gate, up, hidden, ffn [T][…].
function computed(weights, ids) {
  const { config, of } = weights;
  const { n_heads: H, d_head: D, eps } = config;
  const heads = (rows) => lines(H, (h) => rows.map((row) => row.slice(h * D, (h + 1) * D)));
  const each = (rows, name) => rows.map((row) => times(row, of(name)));
  const layers = [];
  let stream = ids.map((id) => Array.from(rowOf(of(TABLE), id)));
  for (let l = 0; l < config.n_layers; l++) {
    const at = (name) => `blocks.${l}.${name}.weight`;
    const before = stream;
    const norm1 = before.map((x) => normed(x, of(at("norm_1")), eps));
    const [query0, key0, value] = ["query", "key", "value"].map((name) => heads(each(norm1, at(`attention.${name}`))));
    const [query, key] = [query0, key0].map((all) => all.map((rows) => rows.map((row, t) => turned(row, t, config))));
    const scores = query.map((rows, h) => rows.map((q, t) => lines(t + 1, (s) => dot(q, key[h][s]) / Math.sqrt(D))));
    const shares = scores.map((rows) => rows.map((row) => softmax(row)));
    const mix = shares.map((rows, h) => rows.map((row) => lines(D, (i) => dot(row, row.map((_, s) => value[h][s][i])))));
    const out = each(ids.map((_, t) => mix.flatMap((rows) => rows[t])), at("attention.out"));
    const middle = before.map((x, t) => plus(x, out[t]));
    const norm2 = middle.map((x) => normed(x, of(at("norm_2")), eps));
    const [gate, up] = ["gate", "up"].map((name) => each(norm2, at(`ffn.${name}`)));
    const hidden = gate.map((row, t) => row.map((x, i) => swish(x) * up[t][i]));
    const ffn = each(hidden, at("ffn.down"));
    stream = middle.map((x, t) => plus(x, ffn[t]));
    layers.push({ before, norm1, query0, key0, query, key, value, scores, weights: shares, mix, out, middle, norm2, gate, up, hidden, ffn });
  }
  const norm = stream.map((x) => normed(x, of("norm.weight"), eps));
  const logits = each(norm, TABLE);
  return { weights, ids, layers, stream, norm, logits, probabilities: logits.map((row) => softmax(row)) };
}

// ---------------------------------------------------------------- where a number comes from

// A number is named by what it is: { kind, layer, head, t, i }, those that it has: t the token, i its place in the vector, which is a
// key's token in scores and weights, and a token's id in logits and probabilities.
// `explained` says how it was made: value, how, and what of, `left` and `right`: { name, colour, values, open(k) → a number's name }.
//   sum of products      value = scale · Σ_k left_k · right_k
// and, of the places of a vector each by itself, with `result` all its values:
//   sum                  value_i = left_i + right_i
//   norm                 value_i = left_i / root · right_i
//   swish                value_i = swish(left_i) · right_i
//   share                value_i = exp(left_i) / Σ_k exp(left_k)
//   byte                 value_i = left_i · step, of a row of a matrix
//   kept                 value_i as it was trained
function explained(run, node, tokenName) {
  const { kind, layer: l, head: h, t, i } = node;
  const { weights, ids, layers } = run;
  const { config, of } = weights;
  const [D, L] = [config.d_head, config.n_layers];
  const layer = layers[l];
  const token = tokenName(ids[t]);
  const inBlock = `block ${l + 1}`;
  const inHead = `head ${h + 1} of ${inBlock}`;
  const matrix = (name) => `blocks.${l}.${name}.weight`;
  const list = (name, colour, values, open) => ({ name, colour, values, open });
  const trained = (shown, name, r) => (k) => ({ kind: "parameter", name, shown, t: r, i: k });
  const column = (shown, name, r) => list(`column ${r + 1} of ${shown}`, undefined, rowOf(of(name), r), trained(`column ${r + 1} of ${shown}, ${inBlock}`, name, r));
  const vector = (name, colour, values, made) => list(name, colour, values, (k) => ({ ...node, ...made, i: k }));
  const products = (value, left, right, scale = 1) => ({ how: "sum of products", value, left, right, scale });
  const streamOf = (number) => vector(`stream of ${token}`, "residual", number < L ? layers[number].before[t] : run.stream[t], { kind: "stream", layer: number });
  const projected = (name) => {
    const value = name === "value" ? layer.value[h][t][i] : layer[`${name}0`][h][t][i];
    return products(value, vector(`${token}, normed`, "residual", layer.norm1[t], { kind: "norm1" }), column(`the ${name} matrix`, matrix(`attention.${name}`), h * D + i));
  };
  const rotated = (name) => {
    const [from, half] = [layer[`${name}0`][h][t], D / 2];
    const [first, angle] = [i % half, angleOf(config, t, i % half)];
    const pair = vector(`pair ${first + 1} before the turn`, name, [from[first], from[first + half]], { kind: `${name}0` });
    pair.open = (k) => ({ ...node, kind: `${name}0`, i: first + k * half });
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    return products(layer[name][h][t][i], pair, list(`turned by ${number(angle, 3)}`, undefined, i < half ? [cos, -sin] : [sin, cos]));
  };
  // Place i of a vector, whose values at all places are given.
  const place = (how, result, left, right, more = {}) => ({ how, value: result.values[i], result, left, right, ...more });
  const here = (values, colour) => list("", colour, values);
  const norm = (values, x, name) => place("norm", here(values, "residual"), x, list("gain", undefined, of(name).values, trained("gain of the norm", name, 0)), { root: rms(x.values, config.eps) });

  function parameter(name, r, colour) {
    const { own, steps } = of(name);
    const values = rowOf(of(name), own ? r : 0);
    return own ? place("byte", here(values, colour), list("whole numbers", colour, own.subarray(r * values.length, (r + 1) * values.length)), undefined, { step: steps[r] })
      : place("kept", here(values, colour));
  }

  const made = {
    parameter: () => parameter(node.name, t),
    stream() {
      if (l === 0) return parameter(TABLE, ids[t], "residual");
      const before = layers[l - 1];
      return place("sum", here(l < L ? layer.before[t] : run.stream[t], "residual"), vector(`after attention of block ${l}`, "residual", before.middle[t], { kind: "middle", layer: l - 1 }),
        vector(`feed-forward of block ${l}`, undefined, before.ffn[t], { kind: "ffn", layer: l - 1 }));
    },
    middle: () => place("sum", here(layer.middle[t], "residual"), vector(`before ${inBlock}`, "residual", layer.before[t], { kind: "stream" }),
      vector(`attention of ${inBlock}`, undefined, layer.out[t], { kind: "out" })),
    norm1: () => norm(layer.norm1[t], streamOf(l), matrix("norm_1")),
    norm2: () => norm(layer.norm2[t], vector(`stream of ${token}`, "residual", layer.middle[t], { kind: "middle" }), matrix("norm_2")),
    norm: () => norm(run.norm[t], streamOf(L), "norm.weight"),
    query0: () => projected("query"),
    key0: () => projected("key"),
    value: () => projected("value"),
    query: () => rotated("query"),
    key: () => rotated("key"),
    score: () => products(layer.scores[h][t][i], vector(`query of ${token}`, "query", layer.query[h][t], { kind: "query" }),
      list(`key of ${tokenName(ids[i])}`, "key", layer.key[h][i], (k) => ({ ...node, kind: "key", t: i, i: k })), 1 / Math.sqrt(D)),
    share: () => place("share", here(layer.weights[h][t], "weights"), vector(`scores of ${token}`, undefined, layer.scores[h][t], { kind: "score" })),
    mix: () => products(layer.mix[h][t][i], vector(`weights of ${token}`, "weights", layer.weights[h][t], { kind: "share" }),
      list(`number ${i + 1} of each value`, "value", layer.weights[h][t].map((_, s) => layer.value[h][s][i]), (k) => ({ ...node, kind: "value", t: k }))),
    out() {
      const all = list(`all heads of ${token}`, "value", layer.mix.flatMap((rows) => rows[t]), (k) => ({ ...node, kind: "mix", head: Math.floor(k / D), i: k % D }));
      return products(layer.out[t][i], all, column("the output matrix", matrix("attention.out"), i));
    },
    gate: () => products(layer.gate[t][i], vector(`${token}, normed`, "residual", layer.norm2[t], { kind: "norm2" }), column("the gate matrix", matrix("ffn.gate"), i)),
    up: () => products(layer.up[t][i], vector(`${token}, normed`, "residual", layer.norm2[t], { kind: "norm2" }), column("the up matrix", matrix("ffn.up"), i)),
    hidden: () => place("swish", here(layer.hidden[t]), vector("gate", undefined, layer.gate[t], { kind: "gate" }), vector("up", undefined, layer.up[t], { kind: "up" })),
    ffn: () => products(layer.ffn[t][i], vector(`hidden numbers of ${token}`, undefined, layer.hidden[t], { kind: "hidden" }), column("the down matrix", matrix("ffn.down"), i)),
    logit: () => products(run.logits[t][i], vector(`${token}, normed at the end`, "residual", run.norm[t], { kind: "norm" }),
      list(`row of ${tokenName(i)} in the table`, "residual", rowOf(of(TABLE), i), trained(`row of ${tokenName(i)} in the table`, TABLE, i))),
    probability: () => place("share", here(run.probabilities[t], "weights"), vector(`logits after ${token}`, undefined, run.logits[t], { kind: "logit" })),
  };

  const names = {
    parameter: () => node.shown,
    stream: () => (l === 0 ? `vector of ${token}` : `stream of ${token} after block ${l}`), middle: () => `stream of ${token} within ${inBlock}`,
    norm1: () => `${token}, normed for attention of ${inBlock}`, norm2: () => `${token}, normed for feed-forward of ${inBlock}`, norm: () => `${token}, normed at the end`,
    query0: () => `query of ${token} before its turn, ${inHead}`, key0: () => `key of ${token} before its turn, ${inHead}`,
    query: () => `query of ${token}, ${inHead}`, key: () => `key of ${token}, ${inHead}`, value: () => `value of ${token}, ${inHead}`,
    score: () => `score of ${token} with ${tokenName(ids[i])}, ${inHead}`, share: () => `weight of ${tokenName(ids[i])} for ${token}, ${inHead}`,
    mix: () => `weighted mean for ${token}, ${inHead}`, out: () => `attention’s output for ${token}, ${inBlock}`,
    gate: () => `gate of ${token}, ${inBlock}`, up: () => `up of ${token}, ${inBlock}`, hidden: () => `hidden numbers of ${token}, ${inBlock}`, ffn: () => `feed-forward’s output for ${token}, ${inBlock}`,
    logit: () => `logit of ${tokenName(i)} after ${token}`, probability: () => `probability of ${tokenName(i)} after ${token}`,
  };
  const alone = ["score", "share", "logit", "probability"].includes(kind);
  return { ...made[kind](), name: names[kind]() + (alone ? "" : `, number ${i + 1}`) };
}
