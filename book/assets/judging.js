// Judges the answers that a reader gives in the page, as the exercise's tests judge them in the notebook.
//
// The page does not say what is right. What an answer is worth stands in entries; each is encrypted under a key that is a slow,
// salted hash of the answer itself: its letters, its words, or the cells of a grid that its numbers fall into. Inside are the exact
// bounds of what is accepted, so that no edge of a cell decides. The sentence on a mistake is encrypted under what the entries
// of exactly this mistake hold. Who has few possible answers to try can still try them all (book/sealing.py says how few).
// book/seal.js, which makes the entries, and the tests run the same code in Node.

const judging = (() => {
  const SCALE = 1e-4; // of a number, below which the cells have one width, and above which they widen with it
  const LONGEST = 500; // characters of an answer
  const CAP = 0.5; // of the points, for an answer that fails what its author could see: course.checks.exercise
  const { subtle } = globalThis.crypto ?? {};

  class Problem extends Error {} // what is no possible answer; the message is for the reader

  // ---------------------------------------------------------------- formulas

  const GREEK = { α: "alpha", β: "beta", γ: "gamma", δ: "delta", ε: "epsilon", η: "eta", θ: "theta", λ: "lambda", μ: "mu", π: "pi", ρ: "rho", σ: "sigma", τ: "tau", φ: "phi" };
  const SIGNS = { "−": "-", "–": "-", "×": "*", "·": "*", "⋅": "*", "÷": "/", "^": "**", "²": "**2", "³": "**3", "√": "sqrt", "[": "(", "]": ")" };
  const LOWERED = "₀₁₂₃₄₅₆₇₈₉";
  const CONSTANTS = { pi: Math.PI, e: Math.E, E: Math.E };
  const FUNCTIONS = {
    log: (x, base) => (base === undefined ? Math.log(x) : base === 2 ? Math.log2(x) : base === 10 ? Math.log10(x) : Math.log(x) / Math.log(base)),
    Rational: (p, q = 1) => p / q,
    Fraction: (p, q = 1) => p / q,
    Integer: (x) => x,
    float: (x) => x,
    int: Math.trunc,
    round: Math.round,
    degrees: (x) => (x * 180) / Math.PI,
    radians: (x) => (x * Math.PI) / 180,
    sec: (x) => 1 / Math.cos(x),
    csc: (x) => 1 / Math.sin(x),
    cot: (x) => 1 / Math.tan(x),
    sech: (x) => 1 / Math.cosh(x),
    erf,
    erfc: (x) => 1 - erf(x),
  };
  for (const name of ["exp", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "floor", "ceil", "abs", "sign", "min", "max", "log2", "log10", "log1p", "expm1"]) FUNCTIONS[name] = Math[name];
  for (const [other, name] of Object.entries({ ln: "log", ceiling: "ceil", Abs: "abs", Min: "min", Max: "max" })) FUNCTIONS[other] = FUNCTIONS[name];

  function erf(x) {
    if (Math.abs(x) > 6) return Math.sign(x); // to the last digit
    let term = x, sum = x;
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n += 1) sum += term *= (2 * x * x) / (2 * n + 1); // all of one sign
    return ((2 / Math.sqrt(Math.PI)) * sum) * Math.exp(-x * x);
  }

  function tokens(text) {
    if (text.length > LONGEST) throw new Problem(`is longer than ${LONGEST} characters`);
    let plain = "";
    for (const sign of text) plain += SIGNS[sign] ?? GREEK[sign] ?? (LOWERED.includes(sign) ? LOWERED.indexOf(sign) : sign);
    const found = plain.match(/(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|\*\*|\/\/|\S/g) ?? [];
    return found.map((token) => token.replace(/^(?:math|np|numpy|sympy|torch)\./, ""));
  }

  // A formula as text, in Python's signs, as a function of the values of its letters; `defined` are names that stand for formulas.
  function formula(text, letters = [], defined = {}) {
    const list = tokens(text);
    const used = new Set();
    let at = 0;
    const take = (...wanted) => (wanted.includes(list[at]) ? list[at++] : undefined);
    const binary = (operands, signs, calls) => () => {
      let left = operands();
      for (let sign; (sign = take(...signs)); ) {
        const [a, b, call] = [left, operands(), calls[sign]];
        left = (values) => call(a(values), b(values));
      }
      return left;
    };
    function signed() {
      const sign = take("-", "+");
      if (!sign) return power();
      const inside = signed();
      return sign === "-" ? (values) => -inside(values) : inside;
    }
    function power() {
      const base = atom();
      if (!take("**")) return base;
      const exponent = signed();
      return (values) => base(values) ** exponent(values);
    }
    const product = binary(signed, ["*", "/", "//"], { "*": (a, b) => a * b, "/": (a, b) => a / b, "//": (a, b) => Math.floor(a / b) });
    const sum = binary(product, ["+", "-"], { "+": (a, b) => a + b, "-": (a, b) => a - b });
    function close() {
      if (!take(")")) throw new Problem(at < list.length ? `cannot be read at “${list[at]}”: write a product with *, as in 2*x` : "lacks a closing bracket");
    }
    function atom() {
      const token = list[at++];
      if (token === undefined) throw new Problem("ends too early");
      if (/^[.\d]/.test(token)) {
        const value = Number(token.replaceAll("_", ""));
        return () => value;
      }
      if (token === "(") {
        const inside = sum();
        close();
        return inside;
      }
      if (letters.includes(token)) {
        used.add(token);
        return (values) => values[token];
      }
      if (Object.hasOwn(defined, token)) {
        const inside = formula(defined[token], letters);
        inside.used.forEach((letter) => used.add(letter));
        return inside.value;
      }
      if (list[at] === "(" && Object.hasOwn(FUNCTIONS, token)) {
        at += 1;
        const inside = [sum()];
        while (take(",")) inside.push(sum());
        close();
        return (values) => FUNCTIONS[token](...inside.map((x) => x(values)));
      }
      if (Object.hasOwn(CONSTANTS, token)) return () => CONSTANTS[token];
      if (/^[A-Za-z_]/.test(token)) {
        const known = letters.length ? `its letters are ${letters.join(", ")}` : "a number has no letters";
        throw new Problem(Object.hasOwn(FUNCTIONS, token) ? `has ${token} without a bracket after it` : `has “${token}”, which is not known here: ${known}`);
      }
      throw new Problem(`cannot be read at “${token}”`);
    }
    const value = sum();
    if (at < list.length) throw new Problem(list[at] === "," ? "has a comma: write one number, with a decimal point" : `cannot be read at “${list[at]}”: write a product with *, as in 2*x`);
    return { value, used };
  }

  function number(text) {
    const value = formula(text).value({});
    if (!Number.isFinite(value)) throw new Problem("is not a finite number");
    return value;
  }

  // ---------------------------------------------------------------- what an answer is, whatever it looks like

  const cell = (x, grid, i) => (Number.isFinite(x) ? Math.floor(Math.asinh(x / SCALE) / grid.step + grid.offsets[i % grid.offsets.length]) : "none");
  const cells = (values, grid) => values.map((x, i) => cell(x, grid, i)).join(" ");

  // Each kind of field: what is hashed of an answer, `key`, and the numbers that are compared.
  const KINDS = {
    number(field, given) {
      const value = number(String(given));
      for (const { of, sign, than, said } of field.limits ?? []) {
        const x = { value, size: Math.abs(value), minus: -value }[of];
        if (!(sign === "<" ? x < than : sign === "<=" ? x <= than : Number.isInteger(x))) throw new Problem(said);
      }
      return { key: field.grid && cells([value], field.grid), values: [value] };
    },
    numbers(field, given) {
      const inside = String(given).trim().replace(/^[[(]|[\])]$/g, "");
      const values = splitAtCommas(inside).map(number);
      if (field.count && values.length !== field.count) throw new Problem(`should be ${field.count} numbers with commas between them`);
      return { key: cells(values, field.grid), values };
    },
    letters(field, given) {
      const chosen = [...new Set(String(given).toLowerCase().match(/[\p{L}\p{N}]/gu) ?? [])].sort();
      if (!chosen.length || !chosen.every((letter) => field.letters.includes(letter))) throw new Problem("should be one or more of the letters");
      return { key: chosen.join("") };
    },
    choice(field, given) {
      const key = plain(given);
      if (!field.options.map(plain).includes(key)) throw new Problem("should be one of the answers");
      return { key };
    },
    words(field, given) {
      const words = given.map(plain);
      const options = field.options.map(plain);
      if (words.length !== field.count || !words.every((word) => options.includes(word))) throw new Problem("is not complete");
      if (field.once && new Set(words).size < words.length) throw new Problem("has one of them twice");
      return { key: words.join("\n") };
    },
    formula(field, given) {
      const { value, used } = formula(String(given), field.letters, field.defined);
      if (field.each && field.letters.some((letter) => !used.has(letter))) throw new Problem(`should be a formula in ${field.letters.join(", ")}`);
      const values = field.points.map(value);
      const missed = (field.shown ?? []).find(({ at, value: wanted, within }) => !(Math.abs(value(at) - wanted) <= within));
      return { key: cells(values, field.grid), values, missed: missed && { ...missed, came: value(missed.at) } };
    },
  };

  const plain = (text) => (typeof text === "string" ? text.trim().toLowerCase() : "");

  function splitAtCommas(text) {
    const parts = [""];
    let depth = 0;
    for (const sign of text) {
      depth += { "(": 1, ")": -1 }[sign] ?? 0;
      if (sign === "," && depth === 0) parts.push("");
      else parts[parts.length - 1] += sign;
    }
    if (parts.length > 1 && !parts.at(-1).trim()) parts.pop(); // [1, 2,]
    return parts;
  }

  function read(field, given) {
    if (given === "" || given === undefined || given === null || given.length === 0) throw new Problem("is empty");
    return KINDS[field.kind](field, given);
  }

  // ---------------------------------------------------------------- hashes and boxes

  const bytes = (text) => new TextEncoder().encode(text);
  const base64 = (data) => btoa(String.fromCharCode(...new Uint8Array(data)));
  const unbase64 = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const sha256 = async (...parts) => new Uint8Array(await subtle.digest("SHA-256", await new Blob(parts).arrayBuffer()));
  const label = async (key) => base64((await sha256("label", key)).slice(0, 6));

  // The slow step: PBKDF2 of what is hashed of an answer, salted by the exercise's id and the field's name.
  async function slow(key, salt, rounds) {
    const secret = await subtle.importKey("raw", bytes(key), "PBKDF2", false, ["deriveBits"]);
    return new Uint8Array(await subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt: bytes(salt), iterations: rounds }, secret, 256));
  }

  async function open(box, key) {
    const data = unbase64(box);
    const secret = await subtle.importKey("raw", key, "AES-GCM", false, ["decrypt"]);
    return JSON.parse(new TextDecoder().decode(await subtle.decrypt({ name: "AES-GCM", iv: data.slice(0, 12) }, secret, data.slice(12))));
  }

  const sentenceKey = (tokens) => sha256("sentence", JSON.stringify(tokens));

  // ---------------------------------------------------------------- the verdict

  async function matches(exercise, field, found) {
    const key = await slow(found.key, `${exercise.id} ${field.name}`, exercise.rounds);
    const box = field.entries[await label(key)];
    const classes = box ? await open(box, key) : [];
    return classes.filter(([, , low, high]) => !low || (low.length === found.values.length && found.values.every((x, i) => low[i] <= x && x <= high[i])));
  }

  // What answers are worth: `given` has the text of each field, the chosen letters, or a list of words.
  async function judge(exercise, given) {
    const found = {}, problems = {};
    for (const field of exercise.fields) {
      try {
        found[field.name] = read(field, given[field.name]);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        problems[field.name] = error.message;
      }
    }
    const possible = Object.keys(problems).length === 0;
    if (exercise.prediction) return { points: possible ? exercise.points : 0, right: possible, wrong: [], problems, missed: {} };
    const named = await Promise.all(exercise.fields.map(async (field) => (found[field.name] ? matches(exercise, field, found[field.name]) : [])));
    const rights = new Set(exercise.fields.filter((_, i) => named[i].some(([right]) => right)).map(({ name }) => name));
    const missed = Object.fromEntries(Object.entries(found).filter(([, it]) => it.missed).map(([name, it]) => [name, it.missed]));
    const earned = exercise.parts.filter((part) => part.names.every((name) => rights.has(name))).reduce((sum, part) => sum + part.points, 0);
    const seen = possible && Object.keys(missed).length === 0;
    const points = seen ? earned : Math.min(earned, CAP * exercise.points);
    const right = points === exercise.points;
    const wrong = exercise.fields.map(({ name }) => name).filter((name) => !rights.has(name));
    return { points, right, wrong, problems, missed, mistake: right ? undefined : await mistake(exercise, named) };
  }

  async function mistake(exercise, named) {
    let ways = [[]];
    for (const classes of named) ways = ways.flatMap((way) => classes.map(([, token]) => [...way, token]));
    for (const way of ways) {
      const key = await sentenceKey(way);
      const box = exercise.sentences[await label(key)];
      if (box) return open(box, key);
    }
    return undefined;
  }

  return { SCALE, Problem, available: subtle !== undefined, formula, read, judge, cell, cells, slow, sha256, label, sentenceKey, base64, bytes };
})();
if (typeof module !== "undefined") module.exports = judging;
