// A wall of clocks: the hands of RoPE at one distance, and the other distance whose wall looks most like it.

const FAR = 2000;
const PAIRS = 32;
const BASES = [100, 10000, 100000, 1000000];

const thousands = (x) => String(x).replace(/\B(?=(\d{3})+$)/g, ",");

function speeds(theta) {
  return Array.from({ length: PAIRS }, (_, i) => Math.pow(theta, -i / PAIRS));
}

// Root mean square chord between the hands of two distances that are `gap` apart.
function codeDistance(gap, omega) {
  return Math.sqrt(omega.reduce((sum, speed) => sum + (2 * Math.sin((gap * speed) / 2)) ** 2, 0) / omega.length);
}

// The nearest look-alike of a distance: [which, how far its code is, how far that of a neighbour].
function lookAlike({ distance, hands, theta }) {
  const omega = speeds(theta).slice(0, hands);
  let [best, least] = [1, codeDistance(1, omega)];
  const neighbour = least;
  for (let gap = 2; gap <= Math.max(distance, FAR - distance); gap += 1) {
    const apart = codeDistance(gap, omega);
    if (apart < least) [best, least] = [gap, apart];
  }
  return [distance + best <= FAR ? distance + best : distance - best, least, neighbour];
}

function saidOf(state) {
  const [other, apart, neighbour] = lookAlike(state);
  const hands = state.hands === PAIRS ? "all 32 hands" : state.hands === 1 ? "the fastest hand of 32" : `the ${state.hands} fastest hands of 32`;
  return (
    `Distance ${thousands(state.distance)}, base ${thousands(state.theta)}, ${hands}: the nearest look-alike up to ${thousands(FAR)} is distance ` +
    `${thousands(other)}, ${thousands(Math.abs(other - state.distance))} away. The two codes are ${number(apart, 5)} apart, those of neighbours ${number(neighbour, 5)}.`
  );
}

// 32 clocks: the hand at the distance, and under it, thicker, that of its look-alike; those that do not count are faint.
function wall(width, state, other) {
  const columns = width < 480 ? 8 : 16;
  const across = width / columns;
  const radius = Math.min(18, 0.5 * across - 3);
  const down = 2 * radius + 10;
  const node = svg("g");
  speeds(state.theta).forEach((speed, i) => {
    const [x, y] = [((i % columns) + 0.5) * across, Math.floor(i / columns) * down + radius + 24];
    const hand = (r, colour, thick) =>
      svg("line", { x1: x, y1: y, x2: x + (radius - 2) * Math.sin(speed * r), y2: y - (radius - 2) * Math.cos(speed * r), stroke: `var(--${colour})`, "stroke-width": thick, "stroke-linecap": "round" });
    node.append(
      svg("g", { opacity: i < state.hands ? 1 : 0.18 },
        svg("circle", { cx: x, cy: y, r: radius, fill: "none", class: "course-axis" }),
        hand(other, "two", 5),
        hand(state.distance, "one", 2),
      ),
    );
  });
  return [24 + Math.ceil(PAIRS / columns) * down, text(4, 14, "thin: this distance; thick: its look-alike"), node];
}

// How far the codes of every second distance are from the one that is chosen, with the handle to drag.
function far(width, top, state, [other, apart], onMove) {
  const omega = speeds(state.theta).slice(0, state.hands);
  const [left, long] = [34, width - 50];
  const frame = chart({ x: [0, FAR], y: [0, 2], box: [left, top + 30, long, 120], yTicks: [0, 1, 2], xTicks: [0, 500, 1000, 1500, 2000], xLabel: "distance", yLabel: "code distance from the chosen one" });
  const by = Math.max(1, Math.ceil(FAR / 1000));
  const points = Array.from({ length: FAR / by + 1 }, (_, k) => [k * by, codeDistance(k * by - state.distance, omega)]);
  frame.line(points, { colour: "three", width: 1 });
  frame.dot(other, apart, { colour: "two", r: 6 });
  const [x, y] = frame.at(state.distance, 0);
  const place = (at) => Math.min(Math.max(Math.round(((at - left) / long) * FAR), 0), FAR);
  return [frame, handle({ x, y, colour: "one", onMove: (at) => onMove(place(at)) })];
}

export default {
  render({ model, el }) {
    const names = ["distance", "hands", "theta"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const distance = slider({ label: "distance", min: 0, max: FAR, step: 1, value: now().distance, format: thousands, colour: "one", onInput: (x) => put({ distance: x }) });
    const hands = slider({ label: "hands that count", min: 1, max: PAIRS, step: 1, value: now().hands, format: String, onInput: (x) => put({ hands: x }) });
    const base = choice({ label: "base θ", options: BASES.map((b) => [b, thousands(b)]), value: now().theta, onChange: (b) => put({ theta: b }) });
    const figure = drawing("", (width) => {
      const found = lookAlike(now());
      const [height, ...nodes] = wall(width, now(), found[0]);
      return [height + 200, ...nodes, ...far(width, height, now(), found, (r) => put({ distance: r }))];
    });
    const told = sentence();
    function draw(state) {
      distance.set(state.distance);
      hands.set(state.hands);
      base.set(state.theta);
      figure.redraw();
      figure.describe(`A wall of 32 clocks, and how far the codes of distances up to 2,000 are from that of the chosen one. ${saidOf(state)}`);
      told.say(saidOf(state));
    }
    el.append(distance, hands, base, figure, told);
    draw(now());
  },
};
