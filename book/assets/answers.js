// Answers in the page: each form asks judging.js for the verdict, says it, and lets progress.js keep it.

(() => {
  const UNSAFE = "This page came by http, where browsers lend no cryptography, so that it cannot check answers: open the book by https or from your disk.";

  const code = (text) => Object.assign(document.createElement("code"), { textContent: text });

  // A sentence with its `code` as such.
  const worded = (text) => text.split("`").map((part, i) => (i % 2 ? code(part) : part));

  function listed(names) {
    return names.flatMap((name, i) => (i ? [", ", code(name)] : [code(name)]));
  }

  // ---------------------------------------------------------------- what is in the form

  function given(form, { name, kind }) {
    const inputs = [...form.elements].filter((element) => element.name === name);
    if (kind === "letters") return inputs.filter((input) => input.checked).map((input) => input.value).join("");
    if (kind === "choice") return inputs.find((input) => input.checked)?.value ?? "";
    if (kind === "words") return inputs.every((input) => !input.value) ? "" : inputs.map((input) => input.value);
    return inputs[0].value.trim();
  }

  function put(form, { name, kind }, value) {
    const inputs = [...form.elements].filter((element) => element.name === name);
    inputs.forEach((input, i) => {
      if (kind === "letters") input.checked = String(value).includes(input.value);
      else if (kind === "choice") input.checked = input.value === value;
      else if (kind === "words") input.value = value?.[i] ?? "";
      else input.value = String(value);
    });
  }

  // ---------------------------------------------------------------- what is said

  function said(exercise, verdict) {
    const paragraphs = [];
    const problems = Object.entries(verdict.problems);
    const wrong = verdict.wrong.filter((name) => !(name in verdict.problems));
    if (exercise.prediction && verdict.right) return { state: "noted", lines: [["Noted. Any possible answer counts: read on to see what came out."]] };
    if (verdict.right) return { state: "right", lines: [["Right."]] };
    if (problems.length) {
      for (const [name, problem] of problems) paragraphs.push([code(name), ` ${problem}.`]);
      return { state: "unclear", lines: paragraphs };
    }
    if (verdict.points > 0) paragraphs.push([`Right in part: ${verdict.points} of ${exercise.points} points. Not right: `, ...listed(wrong), "."]);
    else paragraphs.push(exercise.fields.length > 1 && wrong.length < exercise.fields.length ? ["Not right: ", ...listed(wrong), "."] : ["Not right."]);
    for (const [name, { at, value, came }] of Object.entries(verdict.missed)) {
      const where = Object.entries(at).map(([letter, x]) => `${letter} = ${x}`).join(", ");
      paragraphs.push(["For ", where, ", ", code(name), ` should be ${Number(value.toPrecision(6))}, and yours is ${Number.isFinite(came) ? Number(came.toPrecision(6)) : "no number"}.`]);
    }
    if (verdict.mistake) {
      const { say, see, title } = verdict.mistake;
      const link = see && Object.assign(document.createElement("a"), { href: `#${see}`, textContent: title ?? see });
      paragraphs.push(worded(say));
      if (link) paragraphs.push(["Read: ", link]);
    }
    return { state: "wrong", lines: paragraphs };
  }

  function tell(output, { state, lines }) {
    output.dataset.state = state;
    output.replaceChildren(...lines.map((line) => {
      const paragraph = document.createElement("span");
      paragraph.append(...line);
      return paragraph;
    }));
  }

  function badge(form, state) {
    const head = form.closest(".exercise").querySelector(".exercise-head");
    let mark = head.querySelector(".answer-state");
    const text = { right: "✓ right", noted: "✓ noted", done: "✓ done" }[state];
    if (!mark && text) head.append((mark = Object.assign(document.createElement("span"), { className: "answer-state" })));
    if (mark) mark.textContent = text ?? "";
  }

  // ---------------------------------------------------------------- the forms

  function answering(form) {
    const exercise = JSON.parse(form.querySelector("script").textContent);
    const output = form.querySelector("output");
    const before = progress.exercise(exercise.id);
    if (before) {
      for (const field of exercise.fields) if (before.given?.[field.name] !== undefined) put(form, field, before.given[field.name]);
      badge(form, before.state);
    }
    form.addEventListener("input", ({ target }) => {
      target.removeAttribute("aria-invalid");
      tell(output, { state: "", lines: [] });
    });
    let asked = 0;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (!judging.available && !exercise.prediction) return tell(output, { state: "unclear", lines: [[UNSAFE]] });
      const answer = Object.fromEntries(exercise.fields.map((field) => [field.name, given(form, field)]));
      const turn = ++asked;
      const waiting = setTimeout(tell, 300, output, { state: "", lines: [["Checking …"]] });
      const verdict = await judging.judge(exercise, answer);
      clearTimeout(waiting);
      if (turn !== asked) return; // another answer was sent since
      const words = said(exercise, verdict);
      tell(output, words);
      for (const input of form.querySelectorAll("input[type=text]")) input.name in verdict.problems ? input.setAttribute("aria-invalid", "true") : input.removeAttribute("aria-invalid");
      if (words.state === "unclear") return form.querySelector(`[data-name="${Object.keys(verdict.problems)[0]}"] :is(input, select)`).focus();
      const state = words.state === "wrong" ? "tried" : words.state;
      progress.answered(exercise.id, state, answer);
      badge(form, progress.exercise(exercise.id)?.state ?? state);
    });
  }

  function elsewhere(form) {
    const box = form.querySelector("input");
    if (!progress.available) return form.remove();
    box.checked = progress.exercise(form.dataset.exercise)?.state === "done";
    badge(form, box.checked ? "done" : "");
    box.addEventListener("change", () => {
      progress.answered(form.dataset.exercise, box.checked ? "done" : null, null);
      badge(form, box.checked ? "done" : "");
    });
  }

  for (const form of document.querySelectorAll(".answer-form")) answering(form);
  for (const form of document.querySelectorAll(".answer-done")) elsewhere(form);
})();
