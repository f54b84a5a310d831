// Ranks the passages of the book for a query: BM25 of MiniSearch over titles, what a passage introduces, and its words.
// It needs MiniSearch and bookPassages (book/passages.py), and runs in a page or in node.

globalThis.bookEngine = async (data, MiniSearch) => {
  const KINDS = ["section", "exercise", "term", "formula", "reference", "evidence", "sources"]; // as passages.py numbers them
  const WEIGHT = { section: 1, exercise: 0.45, term: 0.6, formula: 0.5, reference: 0.55, evidence: 0.25, sources: 0.3 };
  const FIELDS = { title: 3, names: 5, formulas: 3, above: 1, text: 1 };
  const STOP = new Set(
    ("a about an and are as at be by can could define definition did difference do does explain for from get give have how i in into is it its " +
      "like many me meaning much my of on or our per should so than that the their them then there these they this those to use used using versus " +
      "vs was we were what when where which who why will with work works would you your").split(" "),
  );
  // What students write for what the chapters say; the glossary brings its own (`data.same`)
  const SAME = [
    ["sqrt", "square root"],
    ["divide", "scale"],
    ["lr", "learning rate"],
    ["temp", "temperature"],
    ["attn", "attention"],
    ["emb", "embedding"],
    ["pos", "position"],
    ["params", "parameters", "weights"],
    ["vocab", "vocabulary"],
    ["init", "initialisation"],
    ["norm", "normalisation"],
    ["grad", "gradient", "slope"],
    ["derivative", "gradient"],
    ["dims", "dimension", "width"],
    ["memory", "bytes"],
    ["nn", "network"],
    ["ce", "cross-entropy"],
    ["backprop", "backpropagation", "backward"],
    ["vanishing gradient", "exploding gradient", "signal through depth"],
    ["bpe", "merge"],
    ["decode", "generate"],
    ["autoregressive", "next token"],
    ["cost", "flops", "work"],
    ["quadratic", "squared"],
    ["picture", "figure"],
    ["scaling law", "Chinchilla rule", "compute budget"],
    ["moe", "mixture of experts"],
    ["mse", "squared error"],
    ["nll", "negative log-likelihood", "cross-entropy"],
    ["lm", "language model"],
    ["cnn", "convolution"],
    ["oov", "unknown word"],
    ["ablate", "remove"],
    ["visualise", "map"],
    ["stability", "overflow", "rounding"],
    ["leakage", "leak"],
    ["multiple", "multi", "several"],
    ["size", "parameters"],
  ];

  // ---------------------------------------------------------------- words

  const LETTERS = { α: "alpha", β: "beta", γ: "gamma", δ: "delta", ε: "epsilon", ζ: "zeta", η: "eta", θ: "theta", κ: "kappa", λ: "lambda", μ: "mu", ν: "nu", ξ: "xi", π: "pi", ρ: "rho", σ: "sigma", τ: "tau", φ: "phi", χ: "chi", ψ: "psi", ω: "omega", ℓ: "ell", "√": "sqrt", "∞": "infinity", "∂": "partial", "∇": "gradient", Σ: "sum" };
  const SIGN = new RegExp(`[${Object.keys(LETTERS).join("")}]`, "giu");
  const WORD = /[\p{L}\p{N}]+(?:[-._'’][\p{L}\p{N}]+)*/gu;

  /** The words of a text as [word, its parts]: LayerNorm, layer-norm and d_k have parts, and are one word too. */
  function words(text) {
    const spelt = text
      .replace(/([a-z])([A-Z][a-z])/g, "$1-$2")
      .replace(SIGN, (sign) => ` ${LETTERS[sign] ?? LETTERS[sign.toLowerCase()]} `)
      .normalize("NFKD")
      .replace(/\p{M}/gu, "")
      .toLowerCase();
    return (spelt.match(WORD) ?? []).map((word) => {
      const parts = word.replace(/['’]s$/, "").split(/[-._'’]/);
      return [parts.join(""), parts];
    });
  }

  /** Plural, tense and American spelling taken off. */
  function stem(word) {
    if (word.length < 4 || /\d/.test(word)) return word;
    let w = word.replace(/alit(?:y|ies)$/, "al").replace(/ies$/, "y").replace(/(s|x|sh|ch|z)es$/, "$1");
    if (!/(?:ss|us|is|ias)$/.test(w)) w = w.replace(/s$/, "");
    w = w.replace(/i[sz](?:e|ed|er|ing|ation)$/, "is").replace(/our$/, "or");
    if (w.length > 5) w = w.replace(/(?<=[aeiouy].*[^e])(?:ing|ed)$/, "").replace(/([^aeiouls])\1$/, "$1");
    return w.replace(/(?<=..)ional$|(?<=...)ion$/, "").replace(/(?<=..)e$/, "");
  }

  /** What the index has of a text: each word, its stem, its parts. */
  const indexed = (text) => words(text).flatMap(([word, parts]) => (parts.length > 1 ? [word, ...parts] : [word]));
  const made = new Map();
  /** A word and its stem, which is marked, or "scal" would pass for a word. */
  function forms(word) {
    if (!made.has(word)) made.set(word, [word, `${stem(word)}~`]);
    return made.get(word);
  }
  const flat = (text) => words(text).flatMap(([, parts]) => parts.map(stem)).join(" ");

  const closed = (text) => flat(text).replaceAll(" ", ""); // ALiBi has two parts, alibi one
  const named = (text) => words(text).flatMap(([word, parts]) => (STOP.has(word) ? [] : parts.map(stem))).join(" ");

  // ---------------------------------------------------------------- the index

  const passages = data.passages.map(([kind, page, anchor, title, text, above, names, formulas, usual], id) => {
    const [address, chapter, place] = data.pages[page];
    return { id, kind: KINDS[kind], address, chapter, place, anchor, title, text, above: `${above} ${anchor ? chapter : ""}`, names, formulas, usual: Boolean(usual) };
  });
  const known = new Map(); // every word and stem of the book, and how often it has it
  const mini = new MiniSearch({
    fields: Object.keys(FIELDS),
    tokenize: indexed,
    processTerm(word) {
      for (const form of forms(word)) known.set(form, (known.get(form) ?? 0) + 1);
      return forms(word);
    },
    extractField: (passage, name) => {
      const value = passage[name];
      if (name === "id") return value;
      const said = Array.isArray(value) ? value.join(" ; ") : value;
      // Neighbours in a name are one word to those who write them so: "KV cache", kvcache
      return name === "title" || name === "names" ? `${said} ${joined(said)}` : said;
    },
  });
  const joined = (text) => {
    const found = words(text).map(([word]) => word);
    return found.slice(1).map((word, i) => (found[i].length + word.length < 24 ? found[i] + word : "")).join(" ");
  };
  await mini.addAllAsync(passages, { chunkSize: 50 }); // the page stays free to answer
  const called = passages.map(({ title, names, formulas }) => [title, ...names, ...formulas].map(named));

  const same = new Map(); // a name as `closed` has it: the other names
  for (const group of [...SAME, ...data.same])
    for (const name of group) same.set(closed(name), [...(same.get(closed(name)) ?? []), ...group.filter((other) => other !== name)]);

  // ---------------------------------------------------------------- queries

  /** The ideas of a query: for each the words that stand for it, with their weights. */
  function ideas(query) {
    const all = words(query);
    const kept = all.filter(([word]) => !STOP.has(word));
    const asked = kept.length ? kept : all;
    const found = asked.map(([word, parts]) => {
      const idea = new Map();
      const add = (term, weight) => idea.set(term, Math.max(weight, idea.get(term) ?? 0));
      for (const form of forms(word)) add(form, 1);
      if (parts.length > 1) for (const part of parts) for (const form of forms(part)) add(form, 0.6);
      if (!known.has(word) && !known.has(`${stem(word)}~`))
        for (let i = 2; i < word.length - 1; i++) {
          const [left, right] = [word.slice(0, i), word.slice(i)];
          if ([left, right].every((part) => part.length > 2 && (known.has(part) || known.has(`${stem(part)}~`)))) for (const part of [left, right]) for (const form of forms(part)) add(form, 0.7);
        }
      return idea;
    });
    const stems = new Set(asked.map(([word]) => stem(word))); // another name that only repeats a word of the query says nothing
    asked.forEach(([word], i) => {
      const next = asked[i + 1]?.[0];
      if (next && known.has(word + next)) for (const idea of [found[i], found[i + 1]]) idea.set(word + next, 1);
      // One to three words that have other names
      for (let n = 1; n <= 3 && i + n <= asked.length; n++)
        for (const name of same.get(asked.slice(i, i + n).flatMap(([, parts]) => parts.map(stem)).join("")) ?? [])
          for (const [other] of words(name))
            if (!STOP.has(other) && !stems.has(stem(other)))
              for (const form of forms(other)) for (let j = i; j < i + n; j++) if (!found[j].has(form)) found[j].set(form, 0.4 / Math.sqrt(words(name).length));
    });
    return { asked: asked.map(([word]) => word), found, sought: asked.flatMap(([, parts]) => parts.map(stem)).join(" ") };
  }

  /** How much a name counts for a query: the same, longer, or one of the things that it speaks of. */
  function nearness(name, sought, whole) {
    if (name === whole || name.replaceAll(" ", "") === sought.replaceAll(" ", "")) return 2.2;
    if (sought.includes(" ") && ` ${name} `.includes(` ${sought} `)) return 1.4;
    return name.length > 2 && ` ${sought} `.includes(` ${name} `) ? 1 + (1.2 * name.split(" ").length) / sought.split(" ").length : 1;
  }

  /**
   * The passages for a query, the best first.
   * @param {string} query
   * @param {{limit?: number, typing?: boolean}} [options] typing: the last word may be the beginning of one
   * @returns {{passage: object, score: number, terms: string[]}[]}
   */
  function search(query, { limit = 8, typing = false } = {}) {
    const { asked, found, sought } = ideas(query);
    if (!asked.length) return [];
    const weight = new Map(found.flatMap((idea) => [...idea]));
    for (const idea of found) for (const [term, w] of idea) weight.set(term, Math.max(w, weight.get(term)));
    const last = asked.at(-1);
    const unknown = new Set(asked.filter((word) => !known.has(word) && !known.has(`${stem(word)}~`)));
    const hits = mini.search([...weight.keys()].join(" "), {
      tokenize: (text) => text.split(" "),
      processTerm: (term) => term,
      boost: FIELDS,
      boostTerm: (term) => weight.get(term),
      prefix: (term) => typing && term === last && term.length > 1,
      fuzzy: (term) => (unknown.has(term) && term.length > 3 && !(typing && term === last && term.length < 6) ? 0.25 : false),
      weights: { prefix: 0.5, fuzzy: 0.4 },
      boostDocument: (id) => WEIGHT[passages[id].kind] * (passages[id].usual && passages[id].kind === "section" ? 0.5 : 1),
    });
    const whole = flat(query);
    const rarity = asked.map((word) => Math.log(1 + passages.length / (1 + (known.get(`${stem(word)}~`) ?? 0))));
    const every = rarity.reduce((sum, x) => sum + x, 0);
    const ranked = hits
      .slice(0, 200)
      .map(({ id, score, queryTerms, terms }) => {
        const met = new Set(queryTerms);
        const share = found.reduce((sum, idea, i) => sum + rarity[i] * Math.max(0, ...[...idea].map(([term, w]) => (met.has(term) ? w : 0))), 0) / every;
        const bonus = Math.max(1, ...called[id].map((name) => nearness(name, sought, whole)));
        return { passage: passages[id], score: score * share ** 2 * bonus, terms };
      })
      .sort((a, b) => b.score - a.score);
    return sectionsFirst(ranked).slice(0, limit);
  }

  /** A section goes before the terms that it introduces and the formulas that it shows. */
  function sectionsFirst(hits) {
    const rest = [...hits];
    const ordered = [];
    while (rest.length) {
      const { kind, title } = rest[0].passage;
      const home = kind === "term" || kind === "formula" ? rest.findIndex(({ passage: p }) => p.kind === "section" && (p.names.includes(title) || p.formulas.includes(title))) : -1;
      if (home > 0) ordered.push(...rest.splice(home, 1));
      ordered.push(rest.shift());
    }
    return ordered;
  }

  /** The part of a passage's text that has most of the words found: [[piece, whether found], …]. */
  function snippet({ passage, terms }, length = 170) {
    const sought = new Set(terms);
    const pieces = passage.text.match(/\S+\s*/g) ?? [];
    const hit = pieces.map((piece) => words(piece).some(([word, parts]) => [word, ...parts].some((part) => !STOP.has(part) && part.length > 1 && forms(part).some((form) => sought.has(form)))));
    let [best, most] = [0, -1];
    for (let start = 0; start < pieces.length; start++) {
      if (start && !/[.:;?!]\s*$/.test(pieces[start - 1])) continue; // it begins with a sentence
      let [size, seen] = [0, new Set()];
      for (let i = start; i < pieces.length && size < length; size += pieces[i++].length) if (hit[i]) seen.add(stem(words(pieces[i])[0][0]));
      if (seen.size > most) [best, most] = [start, seen.size];
    }
    const shown = [];
    let size = 0;
    for (let i = best; i < pieces.length && size < length; size += pieces[i++].length) shown.push([pieces[i], hit[i]]);
    if (size && best + shown.length < pieces.length) shown.push(["…", false]);
    return shown;
  }

  return { search, snippet, count: passages.length };
};
