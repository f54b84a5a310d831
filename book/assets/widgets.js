// Brings the chapters' figures to life without a kernel: a model of plain state under each widget's own module.
// The module stands in the page and is imported from a blob, so that a book opened from a disk works too.

function model(state) {
  const listeners = new Map();
  const changed = new Set();
  return {
    get: (name) => state[name],
    set(name, value) {
      if (typeof name === "object") return Object.entries(name).forEach(([key, x]) => this.set(key, x));
      if (JSON.stringify(state[name]) === JSON.stringify(value)) return;
      state[name] = value;
      changed.add(name);
      for (const call of listeners.get(`change:${name}`) ?? []) call();
    },
    save_changes() {
      if (changed.size) for (const call of listeners.get("change") ?? []) call();
      changed.clear();
    },
    on(event, call) {
      listeners.set(event, [...(listeners.get(event) ?? []), call]);
    },
    off(event, call) {
      listeners.set(event, (listeners.get(event) ?? []).filter((other) => call && other !== call));
    },
  };
}

async function bring(host) {
  const { esm, state } = JSON.parse(host.querySelector("script").textContent);
  const address = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
  try {
    const { default: widget } = await import(address);
    const el = document.createElement("div");
    const it = model(state);
    await widget.initialize?.({ model: it });
    await widget.render({ model: it, el });
    host.querySelector(".course-alternative").remove();
    host.append(el);
    host.dataset.state = "alive";
  } catch (error) {
    host.dataset.state = "failed"; // the text alternative stays
    console.error(`widget ${host.dataset.module}:`, error);
  } finally {
    URL.revokeObjectURL(address);
  }
}

for (const host of document.querySelectorAll(".course-widget-host")) bring(host);
