// What a reader has read and answered, kept in this browser and nowhere else: `progress` for other scripts, the marks on every
// element with data-chapter="ch04_attention", and the panel of the first page. Where a browser keeps nothing, all of it is absent.

const progress = (() => {
  const KEY = "course-progress";
  const HALF = 0.5; // of the sections, which who has read a chapter has seen at least
  const RANK = ["tried", "noted", "done", "right"]; // of what an exercise came to
  const empty = () => ({ form: KEY, chapters: {}, exercises: {}, last: null });

  function store() {
    try {
      localStorage.setItem(`${KEY}-probe`, "1");
      localStorage.removeItem(`${KEY}-probe`);
      return localStorage;
    } catch {
      return null; // a page from a disk, or a private window, may have none
    }
  }
  const kept = store();

  function checked(told) {
    if (told?.form !== KEY || typeof told.chapters !== "object" || typeof told.exercises !== "object") return null;
    const clean = empty();
    for (const [stem, chapter] of Object.entries(told.chapters ?? {})) {
      if (!/^\w+$/.test(stem) || !chapter) continue;
      const { title, read, count, at, seen } = chapter;
      clean.chapters[stem] = { title: String(title ?? stem), read: read === true, count: Number(count) || 0, seen: Array.isArray(seen) ? seen.map(String) : [], at: at && { id: String(at.id), title: String(at.title) } };
    }
    for (const [id, exercise] of Object.entries(told.exercises ?? {}))
      if (RANK.includes(exercise?.state)) clean.exercises[id] = { state: exercise.state, chapter: String(exercise.chapter), given: exercise.given ?? null };
    if (Object.hasOwn(clean.chapters, told.last)) clean.last = told.last;
    return clean;
  }

  function load() {
    try {
      return checked(JSON.parse(kept.getItem(KEY))) ?? empty();
    } catch {
      return empty();
    }
  }

  function change(how) {
    if (!kept) return;
    const now = load(); // another window may have written since
    how(now);
    try {
      kept.setItem(KEY, JSON.stringify(now));
    } catch {
      return; // full
    }
    show();
  }

  const here = document.querySelector('meta[name="course-chapter"]');

  // ---------------------------------------------------------------- for answers.js

  const exercise = (id) => (kept ? load().exercises[id] : undefined);

  function answered(id, state, given) {
    change(({ exercises }) => {
      if (state === null) delete exercises[id];
      else if (!(RANK.indexOf(exercises[id]?.state) > RANK.indexOf(state))) exercises[id] = { state, chapter: here.content, given };
    });
  }

  // ---------------------------------------------------------------- a chapter's page: where the reader is, and the end

  function follow() {
    const stem = here.content;
    const title = document.querySelector("h1").firstChild.textContent.trim();
    const sections = [...document.querySelectorAll(".bd-article > section > section[id]")].filter((section) => section.querySelector("h2"));
    const note = (more) =>
      change((now) => {
        now.last = stem;
        now.chapters[stem] = { read: false, seen: [], ...now.chapters[stem], title, count: Number(here.dataset.exercises) };
        more(now.chapters[stem]);
      });
    note(() => {});
    const seen = new IntersectionObserver(
      (entries) => {
        const top = entries.find((entry) => entry.isIntersecting)?.target;
        if (!top) return;
        note((chapter) => {
          chapter.at = { id: top.id, title: top.querySelector("h2").firstChild.textContent.trim() };
          if (!chapter.seen.includes(top.id)) chapter.seen.push(top.id);
        });
      },
      { rootMargin: "-15% 0px -75% 0px" },
    );
    for (const section of sections) seen.observe(section);
    const end = new IntersectionObserver(([entry]) => {
      if (entry.isIntersecting) note((chapter) => (chapter.read ||= chapter.seen.length >= HALF * sections.length)); // a jump to the end reads nothing
    });
    end.observe(document.querySelector(".prev-next") ?? document.querySelector(".foot"));
  }

  // ---------------------------------------------------------------- marks and the panel

  function solved(now, stem) {
    return Object.values(now.exercises).filter(({ chapter, state }) => chapter === stem && state !== "tried").length;
  }

  function mark(element, now) {
    const stem = element.dataset.chapter;
    const chapter = now.chapters[stem];
    const said = chapter && [chapter.read ? "read" : "begun", chapter.count && `${solved(now, stem)} of ${chapter.count} exercises done`].filter(Boolean).join(", ");
    if (chapter) element.dataset.progress = chapter.read ? "read" : "begun";
    else delete element.dataset.progress;
    element.toggleAttribute("data-progress-last", now.last === stem);
    if (element.hasAttribute("aria-label")) {
      element.dataset.label ??= element.getAttribute("aria-label");
      element.setAttribute("aria-label", said ? `${element.dataset.label}, ${said}` : element.dataset.label);
    } else if (element instanceof HTMLElement) {
      let note = element.querySelector(".progress-mark");
      if (!note && said) element.append((note = Object.assign(document.createElement("span"), { className: "progress-mark" })));
      if (note) note.textContent = said ?? "";
    }
  }

  const panel = document.querySelector(".progress");

  function show() {
    const now = load();
    for (const element of document.querySelectorAll("[data-chapter]")) mark(element, now);
    if (!panel) return;
    const chapters = Object.values(now.chapters);
    const read = chapters.filter((chapter) => chapter.read).length;
    const done = Object.values(now.exercises).filter(({ state }) => state !== "tried").length;
    const parts = [[read, "chapter", "read"], [chapters.length - read, "chapter", "begun"], [done, "exercise", "done"]].filter(([n]) => n);
    panel.querySelector(".progress-said").textContent = parts.length
      ? `${parts.map(([n, what, how]) => `${n} ${what}${n === 1 ? "" : "s"} ${how}`).join(", ")}.`
      : "Nothing yet: the chapters that you read and the exercises that you answer will be marked here.";
    const resume = panel.querySelector(".progress-resume");
    resume.replaceChildren();
    if (now.last) {
      const { title, at } = now.chapters[now.last];
      const link = document.createElement("a");
      link.href = `${now.last}/${now.last}.html${at ? `#${encodeURIComponent(at.id)}` : ""}`;
      link.textContent = at ? `${title}: ${at.title}` : title;
      resume.append("Go on with ", link);
    }
    for (const button of panel.querySelectorAll("button")) button.disabled = !chapters.length;
  }

  function say(text) {
    panel.querySelector("output").textContent = text;
  }

  function bring(now, other) {
    for (const [stem, chapter] of Object.entries(other.chapters)) {
      const mine = now.chapters[stem];
      now.chapters[stem] = { ...chapter, ...mine, read: chapter.read || mine?.read === true };
    }
    for (const [id, its] of Object.entries(other.exercises))
      if (!(RANK.indexOf(now.exercises[id]?.state) >= RANK.indexOf(its.state))) now.exercises[id] = its;
    now.last ??= other.last;
  }

  function managed() {
    panel.querySelector("[data-do=export]").addEventListener("click", () => {
      const address = URL.createObjectURL(new Blob([JSON.stringify(load(), null, 1)], { type: "application/json" }));
      Object.assign(document.createElement("a"), { href: address, download: "progress-mathematics-of-transformers.json" }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
      say("Exported: the file is among your downloads.");
    });
    panel.querySelector("input[type=file]").addEventListener("change", async ({ target }) => {
      const [file] = target.files;
      target.value = "";
      let other = null;
      try {
        other = file && file.size < 2e6 ? checked(JSON.parse(await file.text())) : null;
      } catch {
        // no JSON
      }
      if (other) change((now) => bring(now, other));
      say(other ? "Imported, beside what was here." : "That is no progress file of this book.");
    });
    panel.querySelector("[data-do=forget]").addEventListener("click", () => {
      if (!confirm("Forget what you have read and answered in this browser?")) return;
      kept.removeItem(KEY);
      show();
      say("Forgotten.");
    });
  }

  if (kept) {
    if (here) follow();
    if (panel) managed();
    if (panel && location.protocol === "file:" && /Firefox/.test(navigator.userAgent))
      panel.querySelector(".progress-note").append(" Firefox keeps what a page from a disk notes for that page alone, and not for this one.");
    show();
    addEventListener("storage", show);
  } else if (panel) panel.hidden = true;
  return { exercise, answered, available: kept !== null };
})();
