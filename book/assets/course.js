// What moves on a page beside the widgets: light and dark, the menu, hover cards, copying code.

(() => {
  const root = document.documentElement;

  // ---------------------------------------------------------------- light and dark

  const themeButton = document.getElementById("theme-button");

  function setTheme(theme) {
    root.dataset.theme = theme;
    themeButton.setAttribute("aria-pressed", String(theme === "dark"));
  }

  setTheme(root.dataset.theme);
  themeButton.addEventListener("click", () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    setTheme(theme);
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // a page from a disk may have no storage; the choice then holds for this page
    }
  });

  // ---------------------------------------------------------------- the book's contents on a narrow page, the page's at the side

  const menuButton = document.getElementById("menu-button");
  const menu = document.getElementById("book-nav");

  function openMenu(open) {
    root.classList.toggle("menu-open", open);
    menuButton.setAttribute("aria-expanded", String(open));
    if (open) (menu.querySelector(".current > a") ?? menu.querySelector("a")).focus();
  }

  menuButton.addEventListener("click", () => openMenu(!root.classList.contains("menu-open")));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !root.classList.contains("menu-open")) return;
    openMenu(false);
    menuButton.focus();
  });
  document.getElementById("main-content").addEventListener("click", () => openMenu(false));
  menu.querySelector("a.current")?.setAttribute("aria-current", "page");
  const here = menu.querySelector("a.current");
  if (here) menu.scrollTop = here.offsetTop - menu.clientHeight / 3;

  const pageNav = document.getElementById("page-nav");
  if (pageNav) {
    const wide = matchMedia("(min-width: 80rem)");
    const follow = () => (pageNav.firstElementChild.open = wide.matches);
    wide.addEventListener("change", follow);
    follow();
    const links = new Map([...pageNav.querySelectorAll('a[href^="#"]')].map((link) => [link.hash.slice(1), link]));
    const seen = new IntersectionObserver(
      (entries) => {
        const top = entries.find((entry) => entry.isIntersecting);
        if (!top) return;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(top.target.parentElement.id)?.setAttribute("aria-current", "true");
      },
      { rootMargin: "-10% 0px -75% 0px" },
    );
    for (const id of links.keys()) {
      const heading = id && document.getElementById(id)?.querySelector("h1, h2, h3");
      if (heading) seen.observe(heading);
    }
  }

  // ---------------------------------------------------------------- what is wider than the page can be scrolled by keyboard

  function reachable(node, wide) {
    const given = { tabindex: "0" };
    if (!node.matches("pre")) Object.assign(given, { role: "group", "aria-label": node.matches(".table-scroll") ? "Table" : "Formula" });
    for (const [name, value] of Object.entries(given)) wide ? node.setAttribute(name, value) : node.removeAttribute(name);
  }

  // Asked when the browser has laid a part out, as it comes near or the window changes: no layout is made for the question.
  const sizes = new ResizeObserver((entries) => {
    const wide = entries.map(({ target }) => target.scrollWidth > target.clientWidth + 1); // all is read before anything is written
    entries.forEach(({ target }, i) => reachable(target, wide[i]));
  });
  function watch() {
    sizes.disconnect();
    for (const node of document.querySelectorAll(".bd-article pre, div.math, .table-scroll, .with-receipts .math")) sizes.observe(node);
  }

  document.fonts.ready.then(watch);
  document.fonts.addEventListener("loadingdone", watch); // what comes into view may need fonts that were not loaded before

  // ---------------------------------------------------------------- copying code

  for (const block of document.querySelectorAll(".highlight-python > .highlight")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy-code";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("pre").textContent);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    block.append(button);
  }

  // ---------------------------------------------------------------- hover cards: what a term or a formula is, without leaving the page

  const card = document.createElement("div");
  card.className = "hover-card";
  card.id = "hover-card";
  card.setAttribute("role", "tooltip");
  card.hidden = true;
  document.body.append(card);
  let waiting, shownFor;

  function templateOf(link) {
    return link.hash ? document.getElementById(`card-${link.hash.slice(1)}`) : null;
  }

  function show(link) {
    clearTimeout(waiting);
    if (shownFor === link) return;
    hide();
    card.replaceChildren(templateOf(link).content.cloneNode(true));
    card.hidden = false;
    link.setAttribute("aria-describedby", card.id);
    shownFor = link;
    const [at, own, gap] = [link.getBoundingClientRect(), card.getBoundingClientRect(), 8];
    const above = at.bottom + gap + own.height > window.innerHeight && at.top - gap - own.height > 0;
    card.style.top = `${window.scrollY + (above ? at.top - gap - own.height : at.bottom + gap)}px`;
    card.style.left = `${Math.max(gap, Math.min(at.left, root.clientWidth - own.width - gap))}px`;
  }

  function hide() {
    clearTimeout(waiting);
    shownFor?.removeAttribute("aria-describedby");
    shownFor = undefined;
    card.hidden = true;
  }

  function soon(call, link) {
    clearTimeout(waiting);
    waiting = setTimeout(call, 200, link);
  }

  for (const link of document.querySelectorAll(".bd-article a[href]")) {
    if (!templateOf(link)) continue;
    link.addEventListener("mouseenter", () => soon(show, link));
    link.addEventListener("mouseleave", () => soon(hide));
    link.addEventListener("focus", () => show(link));
    link.addEventListener("blur", () => soon(hide));
  }
  card.addEventListener("mouseenter", () => clearTimeout(waiting));
  card.addEventListener("mouseleave", () => soon(hide));
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
})();
