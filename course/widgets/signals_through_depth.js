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
    `After ${depth} ReLU layers of width ${width}, with ${number(gain)} times He's standard deviation, the expected mean square is 10^${number(expected)}. ` +
    `About 19 of 20 networks lie between 10^${number(low)} and 10^${number(high)}.`
  );
}

function curves(depth, gain, width, box) {
  const frame = chart({ x: [0, 100], y: [-32, 32], box, yTicks: [-30, -15, 0, 15, 30], xLabel: "layers", yLabel: "power of ten of the mean square" });
  const layers = Array.from({ length: 51 }, (_, k) => 2 * k);
  const edge = (i) => layers.map((l) => [l, spread(l, gain, width)[i]]);
  frame.line(edge(1), { colour: "residual", width: 1.5, dash: "4 4" });
  frame.line(edge(2), { colour: "residual", width: 1.5, dash: "4 4" });
  frame.line(edge(0), { colour: "query" });
  frame.line([[depth, spread(depth, gain, width)[1]], [depth, spread(depth, gain, width)[2]]], { colour: "weights", width: 4 });
  frame.dot(depth, spread(depth, gain, width)[0], { colour: "weights", r: 6 });
  return frame;
}

export default {
  render({ model, el }) {
    const names = ["depth", "gain", "width"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const whole = (x) => String(x);
    const sliders = {
      depth: slider({ label: "depth", min: 1, max: 100, step: 1, value: now().depth, format: whole, onInput: (depth) => put({ depth }) }),
      gain: slider({ label: "gain (times He's σ)", min: 0.7, max: 1.4, step: 0.01, value: now().gain, onInput: (gain) => put({ gain }) }),
      width: slider({ label: "width", min: 32, max: 1024, step: 32, value: now().width, format: whole, onInput: (width) => put({ width }) }),
    };
    const figure = drawing("", (room) => {
      const { depth, gain, width } = now();
      return [300, curves(depth, gain, width, [44, 30, room - 60, 215])];
    });
    const told = sentence();
    function draw(state) {
      for (const name of names) sliders[name].set(state[name]);
      figure.redraw();
      const sentenceNow = said(state.depth, state.gain, state.width);
      figure.describe(`The line is the expected mean square by layer; between the dashed lines lie most networks. ${sentenceNow}`);
      told.say(sentenceNow);
    }
    el.append(...Object.values(sliders), figure, told);
    draw(now());
  },
};
