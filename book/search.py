"""Terms, formulas and exercises by name in the site's search, beside the words of all pages.

Sphinx's search lists the objects of a domain, so each of them is one.
"""

from typing import ClassVar

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.domains import Domain, ObjType


class CourseDomain(Domain):
    """What a reader may look for by name."""

    name = "course"
    label = "course"
    object_types: ClassVar = {kind: ObjType(kind) for kind in ("term", "formula", "exercise")}
    initial_data: ClassVar = {"found": {}}  # page: [(name, kind, anchor or label)]

    def get_type_name(self, type, primary=False):
        return type.lname

    def clear_doc(self, docname):
        self.data["found"].pop(docname, None)

    def merge_domaindata(self, docnames, otherdata):
        self.data["found"] |= {name: found for name, found in otherdata["found"].items() if name in docnames}

    def process_doc(self, env, docname, document):
        found = [(term.astext(), "term", term["ids"][0]) for term in document.findall(nodes.term) if term["ids"]]
        for box in document.findall(nodes.container):
            if box["ids"] and "formula" in box["classes"]:
                words = [node.astext() for node in next(box.findall(nodes.paragraph)).children if node.astext().strip()]
                found.append((f"{words[0]} ({words[-1]})", "formula", box["ids"][0]))
            elif "entry" in box["classes"]:
                task = next(box.findall(nodes.paragraph))
                found.append((f"Exercise {task.astext()}", "exercise", next(task.findall(pending_xref))["reftarget"]))
        self.data["found"][docname] = found

    def get_objects(self):
        labels = self.env.domaindata["std"]["anonlabels"]
        for page, found in self.data["found"].items():
            for name, kind, anchor in found:
                docname, id = labels[anchor] if kind == "exercise" and anchor in labels else (page, anchor)
                yield name, name, kind, docname, id, 0 if kind == "term" else 1


def setup(app):
    app.add_domain(CourseDomain)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
