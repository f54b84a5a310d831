// A copied formula is its LaTeX, and symbols light up.

// KaTeX's copy-tex has put LaTeX on the clipboard; the classes that colour it are this book's, and no LaTeX.
document.addEventListener("copy", (event) => {
  const text = event.clipboardData?.getData("text/plain");
  if (text?.includes("\\htmlClass")) event.clipboardData.setData("text/plain", text.replace(/\\htmlClass\{[^}]*\}(\{(?:[^{}]|\{[^{}]*\})*\})/g, "$1"));
});

// The symbol under the pointer lights up wherever the section has it, in formulas and as a name in code.
// Two marks are the same symbol if they have the same letter, face and index: d and d_k are two.

(() => {
  const LETTER = ".katex-html .mord:is(.mathnormal, .mathbf, .mathcal, .mathbb, .boldsymbol)";
  const GREEK = { α: "alpha", β: "beta", γ: "gamma", δ: "delta", ϵ: "eps", ε: "eps", η: "eta", θ: "theta", κ: "kappa", λ: "lambda", μ: "mu", ρ: "rho", σ: "sigma", τ: "tau", ϕ: "phi", φ: "phi", ω: "omega" };
  let lit = [];
  let over;

  /** The index below a letter: in KaTeX's drawing the first line of a script that has a second column. */
  function indexOf(letter) {
    const script = letter.nextElementSibling;
    if (!script?.matches(".msupsub")) return "";
    const list = script.querySelector(".vlist-t2 > .vlist-r > .vlist");
    return list ? list.firstElementChild.textContent.replace(/\u200B/g, "").trim() : "";
  }

  function symbolOf(letter) {
    const face = [...letter.classList].find((name) => /^(math|bold)/.test(name));
    return `${face} ${letter.textContent.trim()} ${indexOf(letter)}`;
  }

  /** Names under which code may have a symbol: d_k, gamma, x. */
  function names(letter) {
    const text = letter.textContent.trim();
    const index = indexOf(letter);
    const own = GREEK[text] ?? text;
    return new Set(index ? [`${own}_${index}`] : [own]);
  }

  /** What lights up: the letter with its index, if it has one. */
  function whole(letter) {
    return indexOf(letter) ? letter.parentElement : letter;
  }

  function clear() {
    for (const node of lit) node.classList.remove("lit");
    lit = [];
    over = undefined;
  }

  function light(letter) {
    if (letter === over) return;
    clear();
    over = letter;
    const part = letter.closest(".formula, section, .exercise, body");
    const symbol = symbolOf(letter);
    const called = names(letter);
    const formulas = [...part.querySelectorAll(LETTER)].filter((other) => symbolOf(other) === symbol).map(whole);
    const code = [...part.querySelectorAll(".highlight-python .n, .highlight-ipython3 .n")].filter((name) => called.has(name.textContent));
    lit = formulas.length + code.length > 1 ? [...formulas, ...code] : []; // alone, it says nothing
    for (const node of lit) node.classList.add("lit");
  }

  // KaTeX's boxes lie over each other: the letter need not be on top
  function under(event) {
    if (!event.target.closest?.(".katex")) return null;
    const found = document.elementsFromPoint(event.clientX, event.clientY);
    return found.find((node) => node.matches(LETTER)) ?? found.find((node) => node.matches(".msupsub"))?.previousElementSibling;
  }

  for (const type of ["pointermove", "pointerdown"])
    document.addEventListener(type, (event) => {
      const letter = under(event);
      if (letter?.matches(LETTER)) light(letter);
      else if (lit.length) clear();
    });
})();
