// Depth, gain and width: the mean square of a signal through ReLU layers.

// log10 of the expected mean square after `depth` layers, and the ends of the interval of about 19 of 20 networks.
function spread(depth, gain, width) {
  const expected = 2 * depth * Math.log10(gain);
  const middle = expected - (2.5 * depth) / width / Math.LN10;
  const half = (1.96 * Math.sqrt((5 * depth) / width)) / Math.LN10;
  return [expected, middle - half, middle + half];
}

function said(depth, gain, width) {
  const [expected, low, high] = spread(depth, gain, width);
  return (
    `After ${depth} ReLU layers of width ${width}, with ${number(gain)} times He's standard deviation, the expected mean square is ${scientific(10 ** expected)}. ` +
    `About 19 of 20 networks lie between ${scientific(10 ** low)} and ${scientific(10 ** high)}.`
  );
}

const NETWORKS = 12;
const next = (state) => (48271 * state) % 2147483647; // Park and Miller's generator
const SUMS = squaresOfReLU(65536);

// Sums of the first k of `count` squares of ReLU of standard normal numbers, by Box and Muller.
function squaresOfReLU(count) {
  const sums = [0];
  for (let [k, u] = [0, 1]; k < count; k++) {
    u = next(u);
    const v = next(u);
    const normal = Math.sqrt(-2 * Math.log(u / 2147483647)) * Math.cos((2 * Math.PI * v) / 2147483647);
    sums.push(sums[k] + Math.max(normal, 0) ** 2);
    u = next(v);
  }
  return sums;
}

// log10 of the mean square after each layer of one random network. Whatever the signal is, the next layer's sums are independent
// normal numbers with the variance gain² · 2 times its mean square, so that no matrix is needed.
function network(seed, gain, width) {
  const path = [0];
  let state = seed;
  for (let layer = 1; layer <= 100; layer++) {
    state = next(state);
    const from = state % (SUMS.length - width);
    path.push(path[layer - 1] + Math.log10((2 * gain * gain * (SUMS[from + width] - SUMS[from])) / width));
  }
  return path;
}

function curves(depth, gain, width, seed, box, onDepth) {
  const most = Math.max(...spread(100, gain, width).map(Math.abs));
  const top = [1, 2, 3, 6, 10, 15, 20, 32].find((y) => y >= most) ?? 32;
  const yTicks = ticks(-top, top, 4).filter(Number.isInteger);
  const frame = chart({ x: [0, 100], y: [-top, top], box, yFormat: (t) => power(t), yTicks, xLabel: "layers", yLabel: "mean square of the signal" });
  const inside = (path) => path.filter(([, y]) => Math.abs(y) <= top);
  const layers = Array.from({ length: 101 }, (_, l) => l);
  for (let k = 1; k <= NETWORKS; k++) {
    const line = frame.line(inside(network(1000 * seed + 37 * k, gain, width).map((y, l) => [l, y])), { colour: "one", width: 1 });
    line.setAttribute("stroke-opacity", 0.6);
  }
  frame.line(inside(layers.map((l) => [l, spread(l, gain, width)[0]])), { colour: "two", width: 3 });
  const [expected, low, high] = spread(depth, gain, width).map((y) => clamp(y, -top, top));
  frame.line([[depth, low], [depth, high]], { colour: "two", width: 4 });
  const [x, y] = frame.at(depth, expected);
  const to = (d) => onDepth(clamp(Math.round(d), 1, 100));
  frame.append(handle({
    x, y, colour: "two", label: "depth, on the line", value: depth, min: 1, max: 100,
    onMove: (px) => to(frame.of(px, 0)[0]), onStep: (right, up) => to(depth + right + up),
  }));
  frame.note(3, -0.78 * top, `${NETWORKS} networks, each with its own weights`, { style: "fill: var(--one)", class: "course-strong" });
  frame.note(3, -0.93 * top, "expected (line), 19 of 20 networks (bar)", { style: "fill: var(--two)", class: "course-strong" });
  return frame;
}

export default {
  render({ model, el }) {
    const names = ["depth", "gain", "width"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const whole = (x) => String(x);
    let seed = 1;
    const sliders = {
      depth: slider({ label: "depth", min: 1, max: 100, step: 1, value: now().depth, format: whole, onInput: (depth) => put({ depth }) }),
      gain: slider({ label: "gain (times He's σ)", min: 0.7, max: 1.4, step: 0.01, value: now().gain, onInput: (gain) => put({ gain }) }),
      width: slider({ label: "width", min: 32, max: 1024, step: 32, value: now().width, format: whole, onInput: (width) => put({ width }) }),
    };
    const figure = drawing("", (room) => {
      const { depth, gain, width } = now();
      return [300, curves(depth, gain, width, seed, [44, 30, room - 60, 215], (d) => put({ depth: d }))];
    });
    const again = buttons(["Other weights", () => {
      seed += 1;
      figure.redraw();
    }]);
    const told = sentence();
    function draw(state) {
      for (const name of names) sliders[name].set(state[name]);
      figure.redraw();
      const sentenceNow = said(state.depth, state.gain, state.width);
      figure.describe(`The mean square of twelve random networks by layer, and what is expected. ${sentenceNow}`);
      told.say(sentenceNow);
    }
    el.append(figure, ...Object.values(sliders), again, told);
    draw(now());
  },
};
