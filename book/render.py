"""Documents from the templates of `book/templates`."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=select_autoescape(("html", "opf", "xhtml", "xml")),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.filters["fmt"] = lambda value, spec: format(value, spec).replace("-", "−")  # {{ seconds|fmt(".2f") }}
TEMPLATES.filters["counted"] = lambda number, what: f"{number:g} {what}{'' if number == 1 else 's'}"


def render(template: str, **given) -> str:
    """The document that a template makes of what it is given; HTML and XML escape it."""
    return TEMPLATES.get_template(template).render(given).rstrip() + "\n"
