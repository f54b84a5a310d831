// Two vectors in the plane: lengths, inner product, angle, and the shadow of u on v.

const LIMIT = 6;
const START = { u: [3, 4], v: [4, 3] };

// Inner product, lengths, cosine and angle in degrees (both null with a zero vector), and the part of u along v.
function compare(u, v) {
  const product = u[0] * v[0] + u[1] * v[1];
  const lengths = [Math.hypot(...u), Math.hypot(...v)];
  const some = lengths[0] > 0 && lengths[1] > 0;
  const cosine = some ? Math.min(Math.max(product / (lengths[0] * lengths[1]), -1), 1) : null;
  const angle = some ? (Math.acos(cosine) * 180) / Math.PI : null;
  const share = lengths[1] > 0 ? product / lengths[1] ** 2 : 0;
  return { product, lengths, cosine, angle, along: [share * v[0], share * v[1]] };
}

function said(u, v) {
  const { product, lengths, cosine, angle } = compare(u, v);
  const one = (name, x, length) => `${name} = (${number(x[0], 1)}, ${number(x[1], 1)}) has length ${number(length)}`;
  const first = `${one("u", u, lengths[0])}, ${one("v", v, lengths[1])}. Their inner product is ${number(product)}`;
  if (cosine === null) return `${first}; with a zero vector there is no angle.`;
  return `${first}, the cosine ${number(cosine, 3)}, the angle ${number(angle, 1)}°.`;
}

const snap = (x) => Math.min(Math.max(Math.round(2 * x) / 2, -LIMIT), LIMIT);

function plane(u, v, box) {
  const numbers = [-6, -4, -2, 0, 2, 4, 6];
  const frame = chart({ x: [-LIMIT, LIMIT], y: [-LIMIT, LIMIT], box, xTicks: numbers, yTicks: numbers });
  frame.line([[0, -LIMIT], [0, LIMIT]], { colour: null, width: 0.6 });
  const { along } = compare(u, v);
  frame.line([u, along], { colour: null, width: 1.5, dash: "4 4" });
  frame.line([[0, 0], along], { colour: "three", width: 7 });
  for (const [name, end, colour] of [["u", u, "one"], ["v", v, "two"]]) {
    if (Math.hypot(...end) > 0) frame.arrow([0, 0], end, { colour });
    frame.note(end[0] + (end[0] < 0 ? -0.75 : 0.45), end[1] + 0.35, name, { class: "course-strong" });
  }
  return frame;
}

export default {
  render({ model, el }) {
    const put = connect(model, el, ["u", "v"], draw);
    const now = () => ({ u: model.get("u"), v: model.get("v") });
    const parts = [["u", "one"], ["v", "two"]].flatMap(([name, colour]) => [0, 1].map((i) => [name, i, colour]));
    const sliders = parts.map(([name, i, colour]) =>
      slider({
        label: `${name}, entry ${i + 1}`, min: -LIMIT, max: LIMIT, step: 0.5, value: now()[name][i], colour, format: (x) => number(x, 1),
        onInput: (x) => put({ [name]: now()[name].map((y, j) => (j === i ? x : y)) }),
      }),
    );
    const halve = (x) => x.map((y) => y / 2);
    const moves = buttons(
      ["Turn v by a right angle", () => put({ v: [0 - now().v[1], now().v[0]] })],
      ["Halve u", () => put({ u: halve(now().u) })],
      ["Start again", () => put(START)],
    );
    const figure = drawing("", (width) => {
      const { u, v } = now();
      const side = Math.min(width - 50, 340);
      const frame = plane(u, v, [34, 12, side, side]);
      const dots = [["u", u, "one"], ["v", v, "two"]].map(([name, end, colour]) => {
        const [x, y] = frame.at(...end);
        return handle({
          x, y, colour, label: `tip of ${name}`, value: end[0], min: -LIMIT, max: LIMIT, said: `(${number(end[0], 1)}, ${number(end[1], 1)})`,
          onMove: (px, py) => put({ [name]: frame.of(px, py).map(snap) }),
          onStep: (...step) => put({ [name]: end.map((a, i) => snap(a + step[i] / 2)) }),
        });
      });
      return [side + 40, frame, ...dots];
    });
    const told = sentence();
    function draw({ u, v }) {
      parts.forEach(([name, i], k) => sliders[k].set({ u, v }[name][i]));
      figure.redraw();
      figure.describe(`Two arrows from the origin; the thick line is the part of u along v. ${said(u, v)}`);
      told.say(said(u, v));
    }
    el.append(figure, ...sliders, moves, told);
    draw(now());
  },
};
