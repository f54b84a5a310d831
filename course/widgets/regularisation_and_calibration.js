// Forecasts of chance events: their reliability diagram, and the calibration error over the number of bins.

const MODULUS = 2 ** 31 - 1;
const MULTIPLIER = 48271; // Park and Miller's generator: products stay below 2^53
const MOST_BINS = 60;

// [[said, happened], …]: even chances between 0 and 1, whose log-odds are divided by τ.
function outcomes(forecasts, tau, seed) {
  let state = (seed * 1000003) % MODULUS;
  const next = () => (state = (MULTIPLIER * state) % MODULUS) / MODULUS;
  for (let i = 0; i < 4; i++) next(); // the first few follow the seed
  return Array.from({ length: forecasts }, () => {
    const [chance, coin] = [next(), next()];
    const said = 1 / (1 + Math.exp(-Math.log(chance / (1 - chance)) / tau));
    return [said, coin < chance ? 1 : 0];
  });
}

// For each bin (m/M, (m+1)/M]: count, sum of what was said, sum of what happened, variance of that sum if honest.
function tally(pairs, bins) {
  const sums = Array.from({ length: bins }, () => [0, 0, 0, 0]);
  for (const [said, happened] of pairs) {
    const bin = sums[Math.min(Math.max(Math.ceil(said * bins), 1), bins) - 1];
    [1, said, happened, said * (1 - said)].forEach((x, i) => (bin[i] += x));
  }
  return sums;
}

// The ECE, and what it is for an honest forecaster on average, nearly.
function errors(pairs, bins) {
  const sums = tally(pairs, bins);
  const total = (f) => sums.reduce((sum, bin) => sum + f(bin), 0) / pairs.length;
  return [total(([, said, happened]) => Math.abs(happened - said)), Math.sqrt(2 / Math.PI) * total((bin) => Math.sqrt(bin[3]))];
}

function said({ bins, forecasts, tau, seed }) {
  const [error, level] = errors(outcomes(forecasts, tau, seed), bins);
  const kind = tau === 1 ? "An honest" : tau < 1 ? "An overconfident" : "A modest";
  return (
    `${kind} forecaster, τ = ${tau.toFixed(2)}, with ${forecasts} forecasts and ${bins} bin${bins > 1 ? "s" : ""}: ` +
    `the ECE is ${error.toFixed(3)}. An honest forecaster who says the same gets about ${level.toFixed(3)}.`
  );
}

function diagram(pairs, bins, box) {
  const ticks = [0, 0.5, 1];
  const frame = chart({ x: [0, 1], y: [0, 1], box, xTicks: ticks, yTicks: ticks, xLabel: "said", yLabel: "share that happened" });
  tally(pairs, bins).forEach(([count, saying, happened], m) => {
    if (count) frame.bar((m + 0.5) / bins, happened / count, { colour: "one", width: 0.86 / bins });
  });
  frame.line([[0, 0], [1, 1]], { colour: null, width: 1.5, dash: "4 4" });
  return frame;
}

function curve(pairs, bins, box) {
  const all = Array.from({ length: MOST_BINS }, (_, k) => [k + 1, ...errors(pairs, k + 1)]);
  const top = Math.max(0.1, ...all.flatMap(([, error, level]) => [error, level])) * 1.1;
  const frame = chart({ x: [0, MOST_BINS], y: [0, top], box, xLabel: "bins", yLabel: "ECE (dashed: honest, on average)" });
  frame.line(all.map(([m, , level]) => [m, level]), { colour: null, width: 1.5, dash: "4 4" });
  frame.line(all.map(([m, error]) => [m, error]), { colour: "two" });
  frame.dot(bins, all[bins - 1][1], { colour: "two", r: 6 });
  return frame;
}

export default {
  render({ model, el }) {
    const names = ["bins", "forecasts", "tau", "seed"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const whole = (x) => x.toFixed(0);
    const ranges = {
      bins: { label: "bins", min: 1, max: MOST_BINS, step: 1, format: whole },
      forecasts: { label: "forecasts", min: 50, max: 2000, step: 50, format: whole },
      tau: { label: "τ of the forecaster", min: 0.4, max: 2.5, step: 0.05 },
    };
    const sliders = Object.entries(ranges).map(([name, range]) => [
      name,
      slider({ ...range, value: now()[name], onInput: (x) => put({ [name]: x }) }),
    ]);
    const moves = buttons(
      ["Draw again", () => put({ seed: (now().seed % 999) + 1 })],
      ["Be honest", () => put({ tau: 1 })],
    );
    const figure = drawing("", (width) => {
      const { bins, forecasts, tau, seed } = now();
      const pairs = outcomes(forecasts, tau, seed);
      const wide = width >= 520;
      const [first, second] = wide ? [0.45 * width, 0.55 * width] : [width, width];
      const tall = wide ? 185 : 120;
      const [x, y] = wide ? [first, 0] : [0, tall + 75];
      return [y + tall + 75, diagram(pairs, bins, [34, 30, first - 64, tall]), curve(pairs, bins, [x + 44, y + 30, second - 54, tall])];
    });
    const told = sentence();
    function draw(state) {
      for (const [name, node] of sliders) node.set(state[name]);
      moves.buttons[1].disabled = state.tau === 1;
      figure.redraw();
      figure.describe(`Reliability diagram, and the calibration error over the number of bins. ${said(state)}`);
      told.say(said(state));
    }
    el.append(figure, ...sliders.map(([, node]) => node), moves, told);
    draw(now());
  },
};
