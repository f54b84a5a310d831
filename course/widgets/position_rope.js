// Rotary clocks: a query hand and a key hand for each pair of dimensions.

function ropeFrequencies(dHead, base) {
  return Array.from({ length: dHead / 2 }, (_, i) => Math.pow(base, (-2 * i) / dHead));
}

// What each pair adds to the score of two equal contents, as a share of distance 0.
function ropeShares(dHead, base, distance) {
  return ropeFrequencies(dHead, base).map((speed) => Math.cos(speed * distance));
}

function ropeScore(dHead, base, distance) {
  const shares = ropeShares(dHead, base, distance);
  return shares.reduce((sum, share) => sum + share, 0) / shares.length;
}

const places = (x) => Math.round(x).toLocaleString("en");

// One clock for each pair: the key's hand in its colour, the query's thinner above it.
function clocks(width, { theta, position, distance, d_head }) {
  const [speeds, shares] = [ropeFrequencies(d_head, theta), ropeShares(d_head, theta, distance)];
  const columns = Math.min(speeds.length, width < 480 ? 4 : 8);
  const across = width / columns;
  const radius = Math.min(44, 0.5 * across - 8);
  const down = 2 * radius + 56;
  const node = svg("g");
  speeds.forEach((speed, i) => {
    const [x, y] = [((i % columns) + 0.5) * across, Math.floor(i / columns) * down + radius + 24];
    const hand = (angle, colour, width) =>
      arrow([x, y], [x + (radius - 3) * Math.cos(angle), y - (radius - 3) * Math.sin(angle)], { colour: `var(--${colour})`, width });
    node.append(
      text(x, y - radius - 8, `pair ${i}`, { "text-anchor": "middle" }),
      svg("circle", { cx: x, cy: y, r: radius, fill: "none", class: "course-axis" }),
      hand(speed * position, "key", 4.5),
      hand(speed * (position + distance), "query", 2),
      text(x, y + radius + 17, `cos ${number(shares[i])}`, { "text-anchor": "middle" }),
    );
  });
  return [Math.ceil(speeds.length / columns) * down, node];
}

// The score over the distance, as far as twice the distance that is set.
function scores(width, top, { theta, distance, d_head }, onMove) {
  const far = Math.max(32, 2 ** Math.ceil(Math.log2(1.3 * distance + 1)));
  const frame = chart({
    x: [0, far], y: [-1, 1], box: [34, top + 26, width - 50, 130], yTicks: [-1, 0, 1],
    xLabel: "distance", yLabel: "score, as a share of the score at distance 0",
  });
  const steps = Math.min(far, 512);
  frame.line(Array.from({ length: steps + 1 }, (_, k) => [(k * far) / steps, ropeScore(d_head, theta, (k * far) / steps)]), { colour: "one", width: 1.5 });
  const [x, y] = frame.at(distance, ropeScore(d_head, theta, distance));
  const to = (d) => onMove(clamp(Math.round(d), 0, 1000));
  frame.append(handle({
    x, y, colour: "one", label: "distance, on the curve", value: distance, min: 0, max: 1000,
    onMove: (px) => to(frame.of(px, 0)[0]), onStep: (right, up) => to(distance + right + up),
  }));
  return frame;
}

export default {
  render({ model, el }) {
    const names = ["theta", "position", "distance", "d_head"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const whole = (name, label, colour) =>
      slider({ label, min: 0, max: 1000, step: 1, value: now()[name], format: places, colour, onInput: (x) => put({ [name]: x }) });
    const base = slider({
      label: "base θ", min: 1, max: 6, step: 0.1, value: Math.log10(now().theta),
      format: (x) => places(10 ** x), onInput: (x) => put({ theta: 10 ** x }),
    });
    const [position, distance] = [whole("position", "key's position", "key"), whole("distance", "distance", "one")];
    const figure = drawing("", (width) => {
      const [height, node] = clocks(width, now());
      return [height + 200, node, scores(width, height, now(), (d) => put({ distance: d }))];
    });
    const told = sentence();
    function draw(state) {
      base.set(Math.log10(state.theta));
      position.set(state.position);
      distance.set(state.distance);
      figure.redraw();
      const said =
        `Query (blue) at position ${state.position + state.distance}, key (yellow) at ${state.position}, base ${places(state.theta)}: ` +
        `the score is ${number(ropeScore(state.d_head, state.theta, state.distance), 3)} of the score at distance 0.`;
      figure.describe(`${state.d_head / 2} clocks, one for each pair of dimensions, and the score over the distance. ${said}`);
      told.say(said);
    }
    el.append(figure, base, position, distance, told);
    draw(now());
  },
};
