// Two walks of the same random numbers, steps of one and jumps of a power law, and the symbol of its kernel.

const STEPS = 200;

// The i-th of a fixed sequence of numbers between 0 and 1, as in Python.
function uniform(i) {
  return (0.5 + (i + 1) * 0.6180339887498949 + 0.11 * Math.sin(12.9898 * (i + 1)) + 0.5 * ((i * i * 0.7548776662466927) % 1)) % 1;
}

function walks({ gamma, cut }) {
  const [N, power] = [2 ** cut, 1 - gamma];
  const [ant, albatross] = [[0], [0]];
  for (let i = 0; i < STEPS; i++) {
    const [side, u] = [uniform(2 * i) < 0.5 ? 1 : -1, uniform(2 * i + 1)];
    const length = Math.abs(power) < 1e-9 ? N ** u : (1 + u * (N ** power - 1)) ** (1 / power);
    ant.push(ant[i] + side);
    albatross.push(albatross[i] + side * length);
  }
  return [ant, albatross];
}

// The symbol of a kernel with two equal sides, r^−γ up to N, at a wave number.
function gain({ gamma, cut }, k) {
  let [sum, total] = [0, 0];
  for (let r = 1; r <= 2 ** cut; r++) {
    const weight = r ** -gamma;
    sum += weight * Math.cos(k * r);
    total += weight;
  }
  return sum / total;
}

function said(state) {
  const [ant, albatross] = walks(state).map((walk) => Math.max(...walk.map(Math.abs)));
  const inside = state.gamma > 1 && state.gamma < 3 ? "is a Lévy index" : "is no Lévy index";
  return (
    `Exponent ${number(state.gamma, 1)}, jumps up to ${(2 ** state.cut).toLocaleString("en-US")}: α = ${number(state.gamma - 1, 1)} ${inside}. ` +
    `In ${STEPS} jumps the ant gets ${number(ant, 0)} away, the albatross ${number(albatross, 0)}. ` +
    `A wave of wave number ${number(10 ** state.wave, 3)} is multiplied by ${number(gain(state, 10 ** state.wave), 3)}.`
  );
}

const WAVES = [-3, 0.45];
const OFF = 10; // the chart's x is log10 k − 10, so that one format tells the axes apart

function picture(state, width, onWave) {
  const [left, room] = [58, width - 76];
  const both = walks(state);
  const panel = (walk, top, colour, label, xLabel) => {
    const reach = Math.max(4, ...walk.map(Math.abs));
    const frame = chart({ x: [0, STEPS], y: [-reach, reach], box: [left, top, room, 84], xTicks: [0, 50, 100, 150, 200], yTicks: ticks(-reach, reach, 5), yLabel: label, xLabel });
    frame.line(walk.map((x, i) => [i, x]), { colour, width: 1.6 });
    return frame;
  };
  const box = [left, 312, room, 130];
  const frame = chart({ x: WAVES.map((t) => t - OFF), y: [-1, 1], box, xTicks: [-13, -12, -11, -10], yTicks: [-1, -0.5, 0, 0.5, 1], format: (t) => (t < -5 ? String(Number((10 ** (t + OFF)).toPrecision(1))) : String(t)), xLabel: "wave number k, radians a token", yLabel: "factor" });
  const curve = Array.from({ length: 91 }, (_, i) => WAVES[0] + ((WAVES[1] - WAVES[0]) * i) / 90);
  frame.line(curve.map((x) => [x - OFF, gain(state, 10 ** x)]), { colour: "two", width: 2 });
  frame.line([[WAVES[0] - OFF, 0], [WAVES[1] - OFF, 0]], { colour: null, width: 1 });
  const [px, py] = frame.at(state.wave - OFF, gain(state, 10 ** state.wave));
  frame.append(handle({ x: px, y: py, colour: "two", onMove: (x) => onWave(WAVES[0] + (Math.min(Math.max((x - box[0]) / box[2], 0), 1)) * (WAVES[1] - WAVES[0])) }));
  return [panel(both[0], 18, "three", "ant", ""), panel(both[1], 152, "one", "albatross", "jumps"), frame];
}

export default {
  render({ model, el }) {
    const names = ["gamma", "cut", "wave"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const steep = slider({ label: "exponent γ of the jumps", min: 0.1, max: 4, step: 0.1, value: now().gamma, format: (x) => number(x, 1), colour: "one", onInput: (gamma) => put({ gamma }) });
    const far = slider({ label: "longest jump N", min: 3, max: 12, step: 1, value: now().cut, format: (x) => (2 ** x).toLocaleString("en-US"), onInput: (cut) => put({ cut }) });
    const wave = slider({ label: "wave number k", min: -3, max: 0.45, step: 0.05, value: now().wave, format: (x) => number(10 ** x, 3), colour: "two", onInput: (x) => put({ wave: x }) });
    const figure = drawing("", (width) => [482, ...picture(now(), width, (x) => put({ wave: Math.round(x * 20) / 20 }))]);
    const told = sentence();
    function draw(state) {
      steep.set(state.gamma);
      far.set(state.cut);
      wave.set(state.wave);
      figure.redraw();
      figure.describe(`Two walks of ${STEPS} jumps and the factor of the kernel by wave number. ${said(state)}`);
      told.say(said(state));
    }
    el.append(steep, far, wave, figure, told);
    draw(now());
  },
};
