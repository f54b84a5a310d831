// Makes the entries that assets/judging.js opens: exercises in plain JSON on standard input, sealed ones on standard output.
// Started by sealing.py. A field has classes of answers, the right one first; a mistake names a class of each field.
const judging = require("./assets/judging.js");
const { subtle } = globalThis.crypto;
const STEPS = [1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1]; // of the grid, in units of asinh: relative, for most numbers
const OFFSETS = 32;
const MARGIN = 1e-9; // of asinh, by which two machines may differ
const BLOCK = 64; // bytes, to a multiple of which what is sealed is filled up

// The fewest cells that hold all classes, those of right and wrong apart where that can be; of equals, the smallest cells.
function gridFor(classes, steps) {
  const length = Math.max(...classes.map(({ low }) => low.length));
  let best;
  for (const step of steps) {
    const grid = { step, offsets: [] };
    let cost = 0;
    for (let i = 0; i < length; i += 1) {
      const tried = Array.from({ length: OFFSETS }, (_, k) => {
        const ranges = classes.filter(({ low }) => low.length > i).map((one) => [one, range(one, i, { step, offsets: [k / OFFSETS] }, 0)]);
        const right = ranges[0][1];
        const cut = ranges.reduce((sum, [, [first, last]]) => sum + last - first, 0);
        const shared = ranges.filter(([one, [first, last]]) => !touches(one, classes[0], i) && first <= right[1] && right[0] <= last).length;
        return { offset: k / OFFSETS, cost: 10 * cut + shared };
      });
      const chosen = tried.reduce((a, b) => (b.cost < a.cost ? b : a));
      grid.offsets.push(chosen.offset);
      cost += chosen.cost;
    }
    if (!best || cost < best.cost) best = { cost, grid };
  }
  return best.grid;
}

const touches = (a, b, i) => a.low[i] <= b.high[i] && b.low[i] <= a.high[i];

function range({ low, high }, i, grid, k = i) {
  const [first, last] = [[low[i], -MARGIN], [high[i], MARGIN]].map(([x, more]) => judging.cell(judging.SCALE * Math.sinh(Math.asinh(x / judging.SCALE) + more), grid, k));
  return [first, last];
}

function keysOf(one, grid) {
  if (one.key !== undefined) return [one.key];
  let keys = [[]];
  for (let i = 0; i < one.low.length; i += 1) {
    const [first, last] = range(one, i, grid);
    keys = keys.flatMap((key) => Array.from({ length: last - first + 1 }, (_, n) => [...key, first + n]));
  }
  return keys.map((key) => key.join(" "));
}

async function box(content, key, size = 0) {
  const text = JSON.stringify(content);
  const wanted = Math.max(size, judging.bytes(text).length);
  const data = judging.bytes(text + " ".repeat(Math.ceil(wanted / BLOCK) * BLOCK - judging.bytes(text).length));
  const iv = (await judging.sha256("iv", key, data)).slice(0, 12); // one for each content, so that a page is the same in each build
  const secret = await subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
  return judging.base64(Buffer.concat([iv, Buffer.from(await subtle.encrypt({ name: "AES-GCM", iv }, secret, data))]));
}

const sorted = (entries) => Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))); // their order says nothing

async function sealField(exercise, { classes, steps, ...field }) {
  if (!classes) return { field, tokens: [] };
  const grid = classes[0].low && gridFor(classes, steps ?? STEPS);
  const held = new Map(), masters = new Map(), tokens = [];
  for (const one of classes)
    for (const key of keysOf(one, grid)) held.set(key, [...(held.get(key) ?? []), one]);
  await Promise.all([...held.keys()].map(async (key) => masters.set(key, await judging.slow(key, `${exercise.id} ${field.name}`, exercise.rounds))));
  for (const one of classes) {
    const first = masters.get(keysOf(one, grid)[0]);
    tokens.push(judging.base64((await judging.sha256("token", first, JSON.stringify([one.low, one.high]))).slice(0, 15)));
  }
  const contents = [...held].map(([key, them]) => [masters.get(key), them.map((one) => [one === classes[0] ? 1 : 0, tokens[classes.indexOf(one)], one.low, one.high])]);
  const size = Math.max(...contents.map(([, content]) => JSON.stringify(content).length));
  const entries = await Promise.all(contents.map(async ([key, content]) => [await judging.label(key), await box(content, key, size)]));
  return { field: { ...field, ...(grid && { grid }), entries: sorted(entries) }, tokens };
}

async function seal({ mistakes, ...exercise }) {
  const fields = [];
  for (const field of exercise.fields) fields.push(await sealField(exercise, field));
  const sentences = await Promise.all(
    mistakes.map(async ({ classes, ...said }) => {
      const key = await judging.sentenceKey(classes.map((place, i) => fields[i].tokens[place]));
      return [await judging.label(key), await box(said, key)];
    }),
  );
  return { ...exercise, fields: fields.map(({ field }) => field), sentences: sorted(sentences) };
}

let text = "";
process.stdin.on("data", (part) => (text += part));
process.stdin.on("end", async () => {
  const sealed = [];
  for (const exercise of JSON.parse(text)) sealed.push(await seal(exercise));
  process.stdout.write(JSON.stringify(sealed));
});
