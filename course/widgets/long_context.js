// Long-context extension: a number and its double.

function render({ model, el }) {
  const show = () => {
    el.textContent = `Twice ${number(model.get("x"))} is ${number(2 * model.get("x"))}.`;
  };
  model.on("change:x", show);
  show();
}

export default { render };
