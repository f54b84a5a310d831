// The first state of each widget of a page as one SVG, for paper and for readers without scripts: what the widget's own
// code drew, in words and shapes as Chromium laid them out, without the controls. book/still.py starts it.

const CONTROLS = ".course-player, .course-slider, .course-toggle, .course-choice, .course-said, input[type=range], summary";
const KEPT = "table, .course-words"; // whose buttons and fields are numbers and words to read
const PAINT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "stroke-linejoin"];
const LETTERS = ["font-size", "font-weight", "font-style", "font-family", "text-anchor", "dominant-baseline"];
const PLAIN = { // of SVG, and of the element that all stands in
  fill: "#000000", "fill-opacity": "1", stroke: "none", "stroke-width": "1", "stroke-opacity": "1", "stroke-dasharray": "none", "stroke-linecap": "butt",
  "stroke-linejoin": "miter", "font-size": "14", "font-weight": "400", "font-style": "normal", "font-family": "", "text-anchor": "start", "dominant-baseline": "auto",
};
const SAID = /^(class|style|role|tabindex|cursor|aria-.*|data-.*)$/; // of an element's attributes, what paper does not need

const escaped = (said) => String(said).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const rounded = (said) => String(said).replace(/-?\d+\.\d{3,}/g, (x) => String(Number(Number(x).toFixed(2))));
const tag = (name, attributes, inside = "") => {
  const list = Object.entries(attributes).filter(([, value]) => value !== undefined && value !== "");
  return `<${name}${list.map(([key, value]) => ` ${key}="${escaped(rounded(value))}"`).join("")}${inside ? `>${inside}</${name}>` : "/>"}`;
};

// A computed colour as [#rrggbb, opacity]; the page's ink is currentColor, nothing is none.
const brush = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const seen = new Map();
function colour(given) {
  if (given === "none") return ["none", 1];
  if (!seen.has(given)) {
    brush.clearRect(0, 0, 1, 1);
    brush.fillStyle = given;
    brush.fillRect(0, 0, 1, 1);
    const a = brush.getImageData(0, 0, 1, 1).data[3] / 255;
    const solid = given.replace(/^rgba\((.*), [\d.]+\)$/, "rgb($1)").replace(/ \/ [\d.e-]+\)$/, ")");
    brush.fillStyle = solid;
    brush.fillRect(0, 0, 1, 1);
    const hex = `#${[...brush.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((x) => x.toString(16).padStart(2, "0")).join("")}`;
    seen.set(given, a < 0.004 ? ["none", 1] : [hex === seen.ink ? "currentColor" : hex, Number(a.toFixed(3))]);
  }
  return seen.get(given);
}

function looks(style) {
  const found = Object.fromEntries([...PAINT, ...LETTERS].map((name) => [name, style.getPropertyValue(name)]));
  for (const name of ["fill", "stroke"]) {
    const [solid, opacity] = colour(found[name]);
    found[name] = solid;
    found[`${name}-opacity`] = rounded(found[`${name}-opacity`] * opacity);
  }
  for (const name of ["stroke-width", "font-size"]) found[name] = found[name].replace("px", "");
  found["font-weight"] = String(100 * Math.round(found["font-weight"] / 100)); // SVG 1.1 knows hundreds
  found["stroke-dasharray"] = found["stroke-dasharray"].replaceAll("px", "");
  found["font-family"] = /mono/i.test(found["font-family"]) ? "monospace" : "";
  return found;
}

// An element of a drawing, with what its looks add to those of what it stands in.
function shape(node, around, mark) {
  if (node.nodeType === Node.TEXT_NODE) return escaped(node.data);
  if (node.nodeType !== Node.ELEMENT_NODE || ["title", "desc", "style"].includes(node.localName)) return "";
  const style = getComputedStyle(node);
  if (style.display === "none" || style.visibility === "hidden" || style.opacity === "0") return "";
  const own = looks(style);
  const inside = [...node.childNodes].map((child) => shape(child, own, mark)).join("");
  const words = node.localName === "text" || node.localName === "tspan";
  if (!inside && (words || node.localName === "g")) return "";
  if (!words && node.localName !== "g" && own.fill === "none" && own.stroke === "none") return ""; // something to touch
  const attributes = {};
  for (const { name, value } of node.attributes) {
    if (name === "id") attributes.id = mark + value;
    else if (!SAID.test(name) && !PAINT.includes(name) && !LETTERS.includes(name)) attributes[name] = value.replace(/^#|url\(#/, `$&${mark}`);
  }
  const names = words ? [...PAINT, ...LETTERS] : PAINT;
  for (const name of names) {
    if (own.stroke === "none" && around.stroke === "none" && name.startsWith("stroke")) continue;
    if (node.localName !== "tspan" && LETTERS.includes(name) ? own[name] !== PLAIN[name] : own[name] !== around[name]) attributes[name] = own[name];
  }
  if (style.opacity !== "1") attributes.opacity = style.opacity;
  if (style.clipPath.startsWith("url")) attributes["clip-path"] = node.getAttribute("clip-path").replace("url(#", `$&${mark}`);
  return tag(node.localName, attributes, inside);
}

function drawing(node, origin, mark) {
  const inside = [...node.childNodes].map((child) => shape(child, PLAIN, mark)).join("");
  const { left, top, width, height } = node.getBoundingClientRect();
  const { x = 0, y = 0, width: wide = width, height: high = height } = node.viewBox.baseVal ?? {};
  const place = { x: left - origin.left, y: top - origin.top };
  if (Math.abs(wide - width) < 1 && !x && !y) return tag("g", { transform: `translate(${rounded(place.x)} ${rounded(place.y)})` }, inside);
  return tag("svg", { ...place, width, height, viewBox: `${x} ${y} ${wide} ${high}`, overflow: "visible" }, inside);
}

// An element's ground and border.
function box(node, style, origin) {
  const { left, top, width, height } = node.getBoundingClientRect();
  const place = { x: left - origin.left, y: top - origin.top };
  const [fill, opacity] = colour(style.backgroundColor);
  const sides = ["Top", "Right", "Bottom", "Left"].map((side) => {
    const wide = style[`border${side}Style`] === "none" ? 0 : parseFloat(style[`border${side}Width`]);
    return [wide, ...colour(style[`border${side}Color`])];
  });
  const all = sides.every((side) => side.join() === sides[0].join());
  const [wide, stroke, strength] = all ? sides[0] : [0, "none", 1];
  const drawn = [];
  if (width && height && (fill !== "none" || (wide && stroke !== "none"))) {
    const half = wide / 2;
    const border = wide ? { stroke, "stroke-width": wide, "stroke-opacity": strength === 1 ? undefined : strength } : {};
    const size = { x: place.x + half, y: place.y + half, width: width - wide, height: height - wide, rx: parseFloat(style.borderTopLeftRadius) || undefined };
    drawn.push(tag("rect", { ...size, fill, "fill-opacity": opacity === 1 ? undefined : opacity, ...border }));
  }
  if (!all) {
    const ends = [[0, 0, 1, 0], [1, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 1]];
    sides.forEach(([thick, paint, strong], i) => {
      if (!thick || paint === "none") return;
      const [x1, y1, x2, y2] = ends[i].map((part, k) => place[k % 2 ? "y" : "x"] + part * (k % 2 ? height : width));
      drawn.push(tag("line", { x1, y1, x2, y2, stroke: paint, "stroke-width": thick, "stroke-opacity": strong === 1 ? undefined : strong }));
    });
  }
  return drawn.join("");
}

// A text's words, those of a line together.
function words(node, style, origin) {
  const lines = [];
  for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
    const range = document.createRange();
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const { left, right, top, height } = range.getBoundingClientRect();
    const last = lines.at(-1);
    if (last && Math.abs(last.top - top) < 2) Object.assign(last, { said: `${last.said} ${word}`, right });
    else if (height) lines.push({ said: word, left, right, top, height });
  }
  brush.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = brush.measureText("x");
  const [fill, opacity] = colour(style.color);
  const own = looks(style);
  const letters = Object.fromEntries(["font-size", "font-weight", "font-style", "font-family"].filter((name) => own[name] !== PLAIN[name]).map((name) => [name, own[name]]));
  return lines
    .map(({ said, left, right, top, height }) => {
      const place = { x: left - origin.left, y: top - origin.top + (height - up - down) / 2 + up };
      if (said.length > 4) place.textLength = right - left; // in another font, too, since more words follow
      return tag("text", { ...place, fill, "fill-opacity": opacity === 1 ? undefined : opacity, ...letters }, escaped(said));
    })
    .join("");
}

function laid(node, origin, mark) {
  const style = getComputedStyle(node);
  if (style.display === "none" || style.visibility === "hidden" || style.opacity === "0") return "";
  if (node.localName === "svg") return drawing(node, origin, mark);
  const inside = [...node.childNodes].map((child) => {
    if (child.nodeType === Node.TEXT_NODE) return words(child, style, origin);
    return child.nodeType === Node.ELEMENT_NODE ? laid(child, origin, mark) : "";
  });
  return box(node, style, origin) + inside.join("");
}

// Controls go; a field becomes what it holds.
function readOnly(el) {
  for (const node of el.querySelectorAll("input:not([type=range]), textarea")) {
    const words = document.createElement(node.localName === "textarea" ? "div" : "span");
    words.textContent = node.value.replace(/^-(?=\d)/, "−");
    words.style.cssText = `display: inline-block; width: ${node.offsetWidth}px; text-align: ${getComputedStyle(node).textAlign}`;
    if (node.localName === "textarea") words.style.cssText = "border: 1px solid #b0b4bc; border-radius: 0.4rem; padding: 0.3rem 0.5rem";
    if (node.matches("[type=checkbox], [type=radio]")) node.remove();
    else node.replaceWith(words);
  }
  for (const node of el.querySelectorAll(`${CONTROLS}, button, select`)) if (!node.closest(KEPT)) node.remove();
  for (const node of el.querySelectorAll("*")) if (/auto|scroll/.test(getComputedStyle(node).overflowY)) Object.assign(node.style, { overflow: "visible", maxHeight: "none" });
}

async function stills() {
  const hosts = [...document.querySelectorAll(".course-widget-host")];
  const frame = () => new Promise((done) => setTimeout(done, 50)); // of virtual time, which has no animation frames
  while (!hosts.every((host) => host.dataset.state)) await frame();
  await document.fonts.ready;
  for (let i = 0; i < 3; i++) await frame(); // drawings learn their width
  brush.fillStyle = getComputedStyle(document.body).color;
  seen.ink = brush.fillStyle;
  const failed = hosts.filter((host) => host.dataset.state !== "alive").map((host) => host.dataset.module);
  const made = hosts.map((host) => {
    if (host.dataset.state !== "alive") return "";
    const el = host.lastElementChild;
    readOnly(el);
    const origin = el.getBoundingClientRect();
    const inside = laid(el, origin, `${host.dataset.module}-`);
    if (!inside) return ""; // controls alone
    const [width, height] = [origin.width, el.getBoundingClientRect().height].map(Math.ceil);
    const size = { viewBox: `0 0 ${width} ${height}`, width, height };
    const font = { "font-size": 14, "font-family": "'Source Sans 3', 'Course Symbols', sans-serif" };
    return tag("svg", { xmlns: "http://www.w3.org/2000/svg", class: "still", ...size, overflow: "visible", ...font, "aria-hidden": "true" }, inside);
  });
  const told = document.createElement("script");
  told.type = "application/json";
  told.id = "stills";
  told.textContent = JSON.stringify({ failed, made }).replaceAll("<", "\\u003c");
  document.body.append(told);
}

stills();
