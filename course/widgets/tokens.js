// The tokenizer of course/tokens.py: same pattern, same merges, same numbers.

const SPACES = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const LETTER = "\\p{L}\\p{Nl}\\p{No}";
const PIECES = new RegExp(
  `'(?:s|t|re|ve|m|ll|d)| ?[${LETTER}]+| ?\\p{Nd}+| ?[^${SPACES}${LETTER}\\p{Nd}]+|[${SPACES}]+(?![^${SPACES}])|[${SPACES}]+`,
  "gu",
);

function mergePair(ids, [left, right], made) {
  const out = [];
  for (let i = 0; i < ids.length; i++) {
    if (ids[i] === left && ids[i + 1] === right) {
      out.push(made);
      i += 1;
    } else out.push(ids[i]);
  }
  return out;
}

function mergeWord(ids, ranks, merges) {
  for (;;) {
    let best = Infinity;
    for (let i = 0; i + 1 < ids.length; i++) best = Math.min(best, ranks.get(`${ids[i]},${ids[i + 1]}`) ?? Infinity);
    if (best === Infinity) return ids;
    ids = mergePair(ids, merges[best], 256 + best);
  }
}

function tokenize(text, merges) {
  const ranks = new Map(merges.map((pair, i) => [String(pair), i]));
  const pieces = text.match(PIECES) ?? [];
  return pieces.flatMap((piece) => mergeWord([...new TextEncoder().encode(piece)], ranks, merges));
}

// The bytes of each token.
function spell(merges) {
  const spelled = Array.from({ length: 256 }, (_, b) => [b]);
  for (const [left, right] of merges) spelled.push([...spelled[left], ...spelled[right]]);
  return spelled;
}

// A token in words: a space is shown as an open box, bytes that are no whole character as numbers.
function shown(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes));
    return text.replaceAll(" ", "␣").replaceAll("\n", "⏎").replaceAll("\t", "⇥");
  } catch {
    return bytes.map((b) => `⟨${b.toString(16).toUpperCase().padStart(2, "0")}⟩`).join("");
  }
}

function plural(n, word) {
  return `${n} ${word}${n === 1 ? "" : "s"}`;
}

export default {
  render({ model, el }) {
    el.classList.add("course-widget");
    const merges = model.get("merges");
    const spelled = spell(merges);

    const field = element("textarea", { rows: 2, spellcheck: "false", "data-lm-suppress-shortcuts": "true" });
    field.value = model.get("text");
    field.addEventListener("input", () => {
      model.set("text", field.value);
      model.save_changes();
      draw();
    });
    const count = slider({
      label: "Merges applied",
      min: 0,
      max: merges.length,
      step: 1,
      value: model.get("applied"),
      format: (x) => x.toFixed(0),
      onInput: (x) => {
        model.set("applied", x);
        model.save_changes();
        draw();
      },
    });
    const pieces = element("p", { class: "course-pieces", "aria-hidden": "true" });
    pieces.style.cssText = "display:flex;flex-wrap:wrap;gap:3px;margin:0.5rem 0;font-family:monospace;max-height:16rem;overflow:auto";
    const last = element("p", { class: "course-last" });
    const said = element("p", { class: "course-said", "aria-live": "polite" });
    el.append(element("label", {}, "Your text", field), count, pieces, said, last);

    function draw() {
      const text = model.get("text");
      const n = Math.min(model.get("applied"), merges.length);
      const ids = tokenize(text, merges.slice(0, n));
      const bytes = new TextEncoder().encode(text).length;
      pieces.replaceChildren(
        ...ids.slice(0, 1000).map((id, i) => {
          const box = element("span", { title: `token ${id}` }, shown(spelled[id]));
          const shade = i % 2 ? "rgba(127,127,127,0.25)" : "transparent";
          box.style.cssText = `border:1px solid currentColor;background:${shade};border-radius:4px;padding:0 3px;white-space:pre`;
          return box;
        }),
      );
      const rate = ids.length ? `, ${(bytes / ids.length).toFixed(2)} bytes for each token` : "";
      said.textContent =
        `${plural(ids.length, "token")} for ${plural([...text].length, "character")} (${plural(bytes, "byte")})${rate}. ` +
        (ids.length && ids.length <= 40 ? `Pieces: ${ids.map((id) => shown(spelled[id])).join(" | ")}` : "");
      const [left, right] = n ? merges[n - 1].map((id) => shown(spelled[id])) : [];
      last.textContent = n ? `Merge ${n}: “${left}” + “${right}” makes token ${255 + n}.` : "No merge: each byte is a token.";
    }

    model.on("change:applied", () => {
      count.set(model.get("applied"));
      draw();
    });
    model.on("change:text", () => {
      if (field.value !== model.get("text")) field.value = model.get("text");
      draw();
    });
    draw();
  },
};
