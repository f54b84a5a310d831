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

// A piece of text from its bytes to its tokens: [[ids, the number of the merge that made them], …].
function mergeSteps(piece, ranks, merges) {
  let ids = [...new TextEncoder().encode(piece)];
  const steps = [[ids, 0]];
  for (;;) {
    let best = Infinity;
    for (let i = 0; i + 1 < ids.length; i++) best = Math.min(best, ranks.get(`${ids[i]},${ids[i + 1]}`) ?? Infinity);
    if (best === Infinity) return steps;
    ids = mergePair(ids, merges[best], 256 + best);
    steps.push([ids, best + 1]);
  }
}

const rankOf = (merges) => new Map(merges.map((pair, i) => [String(pair), i]));
const piecesOf = (text) => text.match(PIECES) ?? [];

function tokenize(text, merges) {
  const ranks = rankOf(merges);
  return piecesOf(text).flatMap((piece) => mergeSteps(piece, ranks, merges).at(-1)[0]);
}

// The piece that holds the letter before the caret.
function pieceAt(text, caret) {
  let end = 0;
  return piecesOf(text).find((piece) => (end += piece.length) >= caret) ?? "";
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

const SHOWN = 1000; // tokens; a longer text is counted but not drawn whole

function chips(ids, spelled, made) {
  const chip = (id, i) => {
    const look = id === made ? "course-chip course-made" : `course-chip${i % 2 ? " course-odd" : ""}`;
    return element("span", { class: look, title: `token ${id}` }, shown(spelled[id]));
  };
  return element("span", { class: "course-chips" }, ...ids.slice(0, SHOWN).map(chip));
}

export default {
  render({ model, el }) {
    const put = connect(model, el, ["text", "applied"], draw);
    const merges = model.get("merges");
    const spelled = spell(merges);
    const now = () => ({ text: model.get("text"), applied: model.get("applied") });
    const typed = field({ label: "Your text", value: now().text, onInput: (text) => put({ text }) });
    const input = typed.querySelector("textarea");
    const count = slider({
      label: "merges applied", min: 0, max: merges.length, step: 1, value: now().applied, format: (x) => x.toFixed(0),
      onInput: (applied) => put({ applied }),
    });
    const pieces = element("div", { "aria-hidden": "true", class: "course-tokens" });
    const told = sentence();
    const last = element("p");
    const ladder = element("ol", { class: "course-ladder" });
    const ladderOf = element("p", { class: "course-strong" });

    // How the word at the caret became its tokens, one merge a line.
    function climb(text, used) {
      const piece = pieceAt(text, document.activeElement === input ? input.selectionEnd : 4);
      const steps = mergeSteps(piece, rankOf(used), used);
      ladderOf.textContent = piece ? `How “${shown(new TextEncoder().encode(piece))}”, the word at the cursor, is put together:` : "";
      ladder.replaceChildren(
        ...steps.map(([ids, merge]) =>
          element("li", {}, chips(ids, spelled, merge ? 255 + merge : -1), merge ? ` merge ${merge}` : " bytes"),
        ),
      );
    }

    function draw({ text, applied }) {
      typed.set(text);
      count.set(applied);
      const used = merges.slice(0, applied);
      const ids = tokenize(text, used);
      const bytes = new TextEncoder().encode(text).length;
      pieces.replaceChildren(chips(ids, spelled, -1));
      const rate = ids.length ? `, ${(bytes / ids.length).toFixed(2)} bytes for each token` : "";
      const listed = ids.length && ids.length <= 40 ? ` Pieces: ${ids.map((id) => shown(spelled[id])).join(" | ")}` : "";
      told.say(`${plural(ids.length, "token")} for ${plural([...text].length, "character")} (${plural(bytes, "byte")})${rate}.${listed}`);
      const [left, right] = used.length ? used.at(-1).map((id) => shown(spelled[id])) : [];
      last.textContent = used.length ? `Merge ${used.length}: “${left}” + “${right}” makes token ${255 + used.length}.` : "No merge: each byte is a token.";
      climb(text, used);
    }

    for (const event of ["keyup", "click", "focus"]) input.addEventListener(event, () => climb(now().text, merges.slice(0, now().applied)));
    el.append(typed, count, last, pieces, told, ladderOf, ladder);
    draw(now());
  },
};
