// A dimension and a number of candidates: the density of the cosine of random directions, and what chance brings.

const RISK = 0.05;

// ln Γ(x) for x > 0: Stirling's series after a shift to x ≥ 8.
function logGamma(x) {
  let shift = 0;
  for (; x < 8; x += 1) shift += Math.log(x);
  const square = 1 / (x * x);
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + (1 / 12 - (1 / 360 - (1 / 1260 - square / 1680) * square) * square) / x - shift;
}

// Density of the cosine c of two random directions in d dimensions.
function density(c, d) {
  return Math.exp(((d - 3) / 2) * Math.log1p(-c * c) + logGamma(d / 2) - logGamma((d - 1) / 2) - 0.5 * Math.log(Math.PI));
}

// What the best of n random candidates exceeds with a probability of at most RISK.
function chanceCosine(d, n) {
  return Math.sqrt((2 * Math.log(n / RISK)) / d);
}

function said(d, n) {
  const sd = 1 / Math.sqrt(d);
  const low = (Math.acos(sd) * 180) / Math.PI;
  const bound = chanceCosine(d, n);
  const best = n === 1 ? "One random candidate" : `The best of ${n.toLocaleString("en")} random candidates`;
  const told = bound < 1 ? `stays below ${bound.toFixed(3)} in at least 19 of 20 searches` : "may come as near as it likes, for all the bound says";
  return (
    `In ${d.toLocaleString("en")} dimensions the cosine of two random directions is 0 ± ${sd.toFixed(3)}, an angle of ${low.toFixed(1)}° to ${(180 - low).toFixed(1)}°. ` +
    `${best} ${told}.`
  );
}

function curve(d, n, box) {
  const EDGE = 0.995;
  const top = 1.15 * Math.max(density(0, d), 1);
  const frame = chart({ x: [-1, 1], y: [0, top], box, xTicks: [-1, -0.5, 0, 0.5, 1], xLabel: "cosine", yLabel: "density" });
  const width = Math.min(EDGE, 6 / Math.sqrt(d)); // where the curve is worth its points
  const inner = Array.from({ length: 161 }, (_, k) => (width * (k - 80)) / 80);
  const cosines = width < EDGE ? [-EDGE, ...inner, EDGE] : inner;
  frame.line(cosines.map((c) => [c, Math.min(density(c, d), top)]));
  const bound = chanceCosine(d, n);
  if (bound < 1) {
    frame.line([[bound, 0], [bound, 0.9 * top]], { colour: "two", dash: "5 4" });
    const room = bound < 0.5;
    frame.note(bound, 0.93 * top, "best of n", { "text-anchor": room ? "start" : "end", dx: room ? 4 : -4 });
  }
  return frame;
}

// What the sliders stop at: all to 10, then `each` a decade in two digits.
function stops(first, last, each) {
  const decades = Math.round(Math.log10(last)) * each;
  const grown = Array.from({ length: decades + 1 }, (_, k) => Number((10 ** (k / each)).toPrecision(2))).map(Math.round);
  const all = new Set([...Array.from({ length: 11 - first }, (_, k) => first + k), ...grown.filter((x) => x >= first)]);
  return [...all].sort((a, b) => a - b);
}

export default {
  render({ model, el }) {
    const put = connect(model, el, ["dimension", "candidates"], draw);
    const now = () => [model.get("dimension"), model.get("candidates")];
    const grouped = (x) => x.toLocaleString("en");
    const size = slider({
      label: "dimension d", values: stops(2, 10000, 20), value: now()[0], format: grouped, colour: "one",
      onInput: (dimension) => put({ dimension }),
    });
    const many = slider({
      label: "candidates n", values: stops(1, 1000000, 10), value: now()[1], format: grouped, colour: "two",
      onInput: (candidates) => put({ candidates }),
    });
    const figure = drawing("", (width) => [300, curve(...now(), [44, 30, width - 60, 215])]);
    const told = sentence();
    function draw() {
      const [d, n] = now();
      size.set(d);
      many.set(n);
      figure.redraw();
      figure.describe(`The density of the cosine of two random directions, and the bound for the best of n candidates. ${said(d, n)}`);
      told.say(said(d, n));
    }
    el.append(figure, size, many, told);
    draw();
  },
};
