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

function clockHand(x, y, radius, angle, colour, width) {
  return svg("line", {
    x1: x, y1: y, x2: (x + radius * Math.cos(angle)).toFixed(2), y2: (y - radius * Math.sin(angle)).toFixed(2),
    stroke: `var(--${colour})`, "stroke-width": width, "stroke-linecap": "round",
  });
}

function render({ model, el }) {
  el.classList.add("course-widget");
  const dHead = model.get("d_head");
  const pairs = dHead / 2, columns = 4, rows = Math.ceil(pairs / columns);
  const cell = { width: 160, height: 150 }, radius = 46;
  const width = columns * cell.width, clocks = rows * cell.height, height = clocks + 56;
  const drawing = picture(width, height, "");
  const said = element("p", { class: "course-said", "aria-live": "polite" });

  const sliders = {
    theta: slider({
      label: "base θ", min: 1, max: 6, step: 0.1, value: Math.log10(model.get("theta")),
      format: (x) => Math.round(Math.pow(10, x)).toLocaleString("en"),
      onInput: (x) => change("theta", Math.pow(10, x)),
    }),
    position: slider({
      label: "key's position", min: 0, max: 1000, step: 1, value: model.get("position"),
      format: (x) => x.toFixed(0), onInput: (x) => change("position", Math.round(x)),
    }),
    distance: slider({
      label: "distance", min: 0, max: 1000, step: 1, value: model.get("distance"),
      format: (x) => x.toFixed(0), onInput: (x) => change("distance", Math.round(x)),
    }),
  };

  function change(name, value) {
    model.set(name, value);
    model.save_changes();
    draw();
  }

  function draw() {
    const base = model.get("theta"), position = model.get("position"), distance = model.get("distance");
    const speeds = ropeFrequencies(dHead, base), shares = ropeShares(dHead, base, distance);
    const score = ropeScore(dHead, base, distance);
    drawing.replaceChildren();
    speeds.forEach((speed, i) => {
      const x = (i % columns) * cell.width + cell.width / 2, y = Math.floor(i / columns) * cell.height + 74;
      drawing.append(
        text(x, y - 58, `pair ${i}`, { "text-anchor": "middle" }),
        svg("circle", { cx: x, cy: y, r: radius, fill: "none", stroke: "currentColor", "stroke-opacity": 0.45 }),
        clockHand(x, y, radius - 3, speed * position, "key", 5),
        clockHand(x, y, radius - 3, speed * (position + distance), "query", 2.5),
        text(x, y + 64, `cos = ${shares[i].toFixed(2)}`, { "text-anchor": "middle" }),
      );
    });
    const left = 40, right = width - 40, middle = (left + right) / 2, line = clocks + 20;
    drawing.append(
      svg("line", { x1: left, y1: line, x2: right, y2: line, stroke: "currentColor", "stroke-opacity": 0.45 }),
      svg("line", { x1: middle, y1: line, x2: (middle + (score * (right - left)) / 2).toFixed(2), y2: line, stroke: "var(--weights)", "stroke-width": 8 }),
      text(left, line + 24, "−1", { "text-anchor": "middle" }),
      text(middle, line + 24, "score: mean of the cosines", { "text-anchor": "middle" }),
      text(right, line + 24, "1", { "text-anchor": "middle" }),
    );
    const told = `Query (blue) at position ${position + distance}, key (orange) at ${position}, base ${Math.round(base).toLocaleString("en")}: ` +
      `the score is ${score.toFixed(3)} of the score at distance 0.`;
    said.textContent = told;
    drawing.describe(`${pairs} clocks. ${told}`);
  }

  el.append(sliders.theta, sliders.position, sliders.distance, drawing, said);
  model.on("change:theta", () => { sliders.theta.set(Math.log10(model.get("theta"))); draw(); });
  for (const name of ["position", "distance"]) {
    model.on(`change:${name}`, () => { sliders[name].set(model.get(name)); draw(); });
  }
  draw();
}

export default { render };
