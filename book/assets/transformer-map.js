// The map of the whole transformer: the part that is touched is told of below the drawing, in the sizes of the chosen model.
// TRANSFORMER is written at build time into transformer-map-told.js.

for (const map of document.querySelectorAll(".transformer-map")) {
  const links = [...map.querySelectorAll(".map-drawing a[data-part]")];
  const entries = [...map.querySelectorAll(".map-entry")];
  const form = map.querySelector(".map-model");
  let shown = map.querySelector(".map-entry.is-shown").dataset.part;

  function show(part) {
    shown = part;
    for (const node of [...links, ...entries]) node.classList.toggle("is-shown", node.dataset.part === part);
  }

  for (const link of links) {
    const { part } = link.dataset;
    let first = false; // whether a finger touches a part that is not told of yet: then it does not lead away
    link.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && show(part));
    link.addEventListener("pointerdown", (event) => (first = event.pointerType !== "mouse" && shown !== part));
    link.addEventListener("focus", () => show(part));
    link.addEventListener("click", (event) => {
      if (first || link.getAttribute("href").startsWith("#")) event.preventDefault();
      first = false;
      show(part);
    });
  }

  for (const entry of entries) entry.querySelector(".map-formula").innerHTML = TRANSFORMER.formulas[entry.dataset.part];
  form.hidden = false;
  form.addEventListener("change", () => {
    const told = TRANSFORMER.sizes[form.elements.model.value];
    form.querySelector("output").textContent = `${told.model[1]} parameters`;
    for (const entry of entries)
      for (const place of entry.querySelectorAll("[data-told]")) place.textContent = told[entry.dataset.part][place.dataset.told];
  });
}
