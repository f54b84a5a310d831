// The search of every page: opened by its box or by /, answers while one types; the page search.html shows more of them.
// What it needs is loaded when it opens, as scripts, so that a book on a disk can search too.

(() => {
  const root = document.documentElement.dataset.content_root;
  const form = document.querySelector(".bar .search");
  const box = document.getElementById("search-input");
  const SCRIPTS = ["_static/minisearch/minisearch.js", "_static/search-engine.js", "search-passages.js"];
  const SHOWN = 8;
  let engine;

  function script(name) {
    return new Promise((loaded, failed) => {
      const tag = Object.assign(document.createElement("script"), { src: root + name, onload: loaded, onerror: () => failed(new Error(`${name} is missing`)) });
      document.head.append(tag);
    });
  }

  /** The engine; the first call loads it. */
  function ready() {
    engine ??= Promise.all(SCRIPTS.map(script)).then(() => globalThis.bookEngine(globalThis.bookPassages, globalThis.MiniSearch));
    return engine;
  }
  globalThis.bookSearch = async (query, options) => (await ready()).search(query, options);

  const element = (name, given = {}, ...inside) => {
    const node = Object.assign(document.createElement(name), given);
    node.append(...inside);
    return node;
  };

  const KIND = { exercise: "Exercise", term: "Glossary", formula: "Formula", reference: "Reference", evidence: "Evidence", sources: "Reference" };

  function address({ address, anchor }) {
    return root + address + (anchor && `#${anchor}`);
  }

  /** What stands in a result: where it is, its title, the words around what was found. */
  function inside(hit, using) {
    const { kind, title, place, chapter } = hit.passage;
    const where = [KIND[kind], place, chapter !== title && kind !== "term" && kind !== "formula" && chapter].filter(Boolean).join(" · ");
    const piece = element("span", { className: "search-snippet" });
    for (const [text, found] of using.snippet(hit)) {
      const [, word, rest] = found ? /^(.*?)([\s.,;:!?]*)$/s.exec(text) : [];
      piece.append(...(found ? [element("mark", {}, word), rest] : [text]));
    }
    return [element("span", { className: "search-where" }, where), element("span", { className: "search-title" }, title), piece];
  }

  // ---------------------------------------------------------------- while one types

  const list = element("div", { id: "search-list", className: "search-list", hidden: true });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Found in the book");
  const said = element("p", { className: "search-said" });
  said.setAttribute("role", "status");
  form.append(list, said);
  for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-controls": list.id, "aria-expanded": "false" })) box.setAttribute(name, value);
  let chosen = -1;
  let latest = 0;

  function choose(index) {
    const options = [...list.children];
    options[chosen]?.setAttribute("aria-selected", "false");
    chosen = options.length ? (index + options.length + 1) % (options.length + 1) : -1; // one past the last is the box itself
    if (chosen === options.length) chosen = -1;
    const option = options[chosen];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    option ? box.setAttribute("aria-activedescendant", option.id) : box.removeAttribute("aria-activedescendant");
  }

  function close() {
    latest++;
    list.hidden = true;
    list.replaceChildren();
    said.textContent = "";
    choose(-1);
    box.setAttribute("aria-expanded", "false");
  }

  async function answer() {
    const query = box.value;
    const turn = ++latest;
    if (!query.trim()) return close();
    let using;
    if (!globalThis.bookEngine) said.textContent = "The search is loading …";
    try {
      using = await ready();
    } catch (error) {
      said.textContent = `The search does not work: ${error.message}.`;
      return;
    }
    if (turn !== latest) return; // more was typed meanwhile
    const hits = using.search(query, { limit: SHOWN, typing: true });
    list.replaceChildren(
      ...hits.map((hit, i) => {
        const option = element("a", { id: `search-option-${i}`, href: address(hit.passage), tabIndex: -1 }, ...inside(hit, using));
        option.setAttribute("role", "option");
        option.setAttribute("aria-selected", "false");
        return option;
      }),
    );
    list.hidden = !hits.length;
    choose(-1);
    box.setAttribute("aria-expanded", String(hits.length > 0));
    said.textContent = hits.length ? "" : "Nothing found. Try other words.";
  }

  box.addEventListener("focus", () => ready().catch(() => {}));
  box.addEventListener("input", answer);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      if (box.value) box.value = "";
      else box.blur();
      close();
      event.preventDefault();
    } else if (!list.hidden && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      choose(event.key === "ArrowDown" ? chosen + 1 : chosen < 0 ? list.children.length - 1 : chosen - 1);
      event.preventDefault();
    } else if (event.key === "Enter" && chosen >= 0) {
      list.children[chosen].click();
      event.preventDefault();
    }
  });
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the box keeps the focus
  list.addEventListener("click", () => setTimeout(() => (close(), box.blur()))); // a place on this page
  form.addEventListener("focusout", (event) => form.contains(event.relatedTarget) || close());
  form.addEventListener("focusin", () => list.hidden && box.value && answer());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, [contenteditable]")) return;
    event.preventDefault();
    box.focus();
    box.select();
  });

  // ---------------------------------------------------------------- the page of results

  const results = document.getElementById("search-results");
  if (results) {
    const query = new URLSearchParams(location.search).get("q") ?? "";
    document.getElementById("search-again").value = query;
    const count = document.getElementById("search-count");
    if (query.trim())
      ready()
        .then((using) => {
          const hits = using.search(query, { limit: 30 });
          count.textContent = hits.length ? `The ${hits.length} best places for “${query}”` : `Nothing found for “${query}”. Try other words.`;
          results.append(...hits.map((hit) => element("li", {}, element("a", { href: address(hit.passage) }, ...inside(hit, using)))));
        })
        .catch((error) => (count.textContent = `The search does not work: ${error.message}.`));
  }
})();
