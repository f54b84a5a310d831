"""Figures one can play with: one ESM module and one class each, alive in JupyterLab and, without a kernel, in the book.

A widget subclasses `Widget`, sets ``_esm = esm("attention")``, has synced traits for its state, and
says in `describe` what it shows, for a reader who cannot see or use it.
"""

from pathlib import Path

import anywidget

__all__ = ["HERE", "MIME", "Widget", "esm", "scientific"]

HERE = Path(__file__).resolve().parent
MIME = "application/vnd.course.widget+json"


def esm(stem: str) -> str:
    """The shared library and the widget's own module as one ES module.

    The module's text becomes a function's, so that its names may be those of the library.

    Raises:
        FileNotFoundError: if there is no ``course/widgets/<stem>.js``.
    """
    own = (HERE / f"{stem}.js").read_text().replace("export default", "return", 1)
    return f"{(HERE / 'library.js').read_text()}\nexport default (() => {{\n{own}}})();\n"


def scientific(x: float) -> str:
    """A positive number in two digits, as the library of the modules writes it: 0.13, 42, 1.3 × 10⁻⁹."""
    digits, exponent = (float(part) for part in f"{x:.1e}".split("e"))
    if -2 <= exponent <= 3:
        return f"{digits * 10**exponent:.{max(1 - int(exponent), 0)}f}"
    return f"{digits:.1f}\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10" + str(int(exponent)).translate(
        str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    )


class Widget(anywidget.AnyWidget):
    """An anywidget that carries its state and a text alternative in its output.

    The book draws the page's live copy from them; a notebook without a kernel shows the text.
    """

    stem: str  # of the module in this folder
    _css = (HERE / "library.css").read_text()

    def describe(self) -> str:
        """What the figure shows in its present state, in one to three sentences."""
        raise NotImplementedError

    def state(self) -> dict:
        """The synced traits that the JavaScript side reads, as plain JSON values."""
        return {
            name: value
            for name, value in self.get_state().items()
            if not name.startswith("_") and name not in ("layout", "tabbable", "tooltip")
        }

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {
            **data,
            "text/plain": self.describe(),
            MIME: {"module": self.stem, "state": self.state(), "text": self.describe()},
        }, metadata
