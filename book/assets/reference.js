// Reference pages: filters whose state is in the page's address, and buttons that copy LaTeX.
// A form.filter names its items by a selector; a select keeps the items of class is-<value>.

const say = (form, text) => (form.querySelector("output").textContent = text);

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea"); // a page that was not served over https has no clipboard
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

function filter(form) {
  const items = [...document.querySelectorAll(form.dataset.items)];
  let text; // of each item, when somebody asks for words
  const sections = [...new Set(items.map((item) => item.closest("section:not(:has(form.filter))")))].filter(Boolean);
  const given = new URLSearchParams(location.search);
  for (const field of form.elements) if (field.name && given.has(field.name)) field.value = given.get(field.name);

  function apply() {
    const words = plain(form.elements.words.value).split(/\s+/).filter(Boolean);
    const classes = [...form.querySelectorAll("select")].filter((select) => select.value).map((select) => `is-${select.value}`);
    if (words.length) text ??= items.map((item) => plain(item.textContent + (follower(item)?.textContent ?? "")));
    let shown = 0;
    items.forEach((item, i) => {
      const kept = words.every((word) => text[i].includes(word)) && classes.every((name) => item.classList.contains(name));
      for (const node of [item, follower(item)]) if (node && node.hidden === kept) node.hidden = !kept;
      shown += kept;
    });
    for (const section of sections) section.hidden = !section.querySelector(`:is(${form.dataset.items}):not([hidden])`);
    say(form, `${shown} of ${items.length} ${form.dataset.what}`);
    const state = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    const query = state.size ? `?${state}` : location.pathname;
    history.replaceState(null, "", query + location.hash);
  }

  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  form.querySelector("[data-copy-link]").addEventListener("click", async () => {
    await copy(location.href);
    say(form, "The link is copied");
  });
  form.hidden = false;
  apply();
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
const follower = (item) => (item.nextElementSibling?.tagName === "DD" ? item.nextElementSibling : null);

function copyButton(formula) {
  const latex = formula.querySelector("math[data-tex]")?.dataset.tex.trim();
  if (!latex) return;
  const name = formula.querySelector("strong").textContent;
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "copy-latex", textContent: "Copy LaTeX" });
  button.setAttribute("aria-label", `Copy LaTeX of ${name}`);
  button.addEventListener("click", async () => {
    await copy(latex.replace(/\\htmlClass\{[^}]*\}(\{(?:[^{}]|\{[^{}]*\})*\})/g, "$1"));
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy LaTeX"), 2000);
  });
  formula.querySelector("p").append(button);
}

// The page of all formulas has MathML (book/light.py): it is drawn as in the chapters when it comes near
let typesetter;
function drawn(formula) {
  const all = formula.querySelectorAll("math[data-tex]");
  if (!all.length) return;
  typesetter ??= new Promise((loaded, failed) =>
    document.head.append(
      Object.assign(document.createElement("script"), { src: `${document.documentElement.dataset.content_root}_static/katex/katex.min.js`, onload: loaded, onerror: failed }),
    ),
  );
  typesetter.then(
    () => {
      for (const math of all) {
        const drawing = document.createElement("span");
        globalThis.katex.render(math.dataset.tex, drawing, { displayMode: math.getAttribute("display") === "block", strict: "ignore", trust: ({ command }) => command === "\\htmlClass" });
        math.replaceWith(...drawing.childNodes);
      }
    },
    () => {}, // the MathML stays
  );
}

const seen = new IntersectionObserver(
  (entries) => {
    for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
      seen.unobserve(target);
      copyButton(target);
      drawn(target);
    }
  },
  { rootMargin: "100%" },
);

for (const form of document.querySelectorAll("form.filter")) filter(form);
for (const formula of document.querySelectorAll(".formula")) seen.observe(formula); // hundreds: each when it comes near
