"""What only Sphinx knows once all pages are read, for the notebooks: ``targets.json`` beside the
site, with titles, labels, numbers, the literature, and what failed while the cells ran.
"""

import json
import re
from pathlib import Path
from typing import Any, cast

from docutils.nodes import make_id
from pybtex.database import Entry
from sphinx.application import Sphinx
from sphinx.domains.math import MathDomain
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment

from website.notebooks.targets import NAME
from website.syntax.claim import claims_of


def targets(env: BuildEnvironment) -> dict[str, Any]:
    """What is in the file: website/notebooks/targets.py."""
    std = cast(StandardDomain, env.get_domain("std"))
    math = cast(MathDomain, env.get_domain("math"))
    counts = {
        (page, id_): (kind, ".".join(map(str, number)))
        for page, kinds in env.toc_fignumbers.items()
        for kind, ids in kinds.items()
        for id_, number in ids.items()
    }

    def number(page: str, anchor: str) -> str:
        kind, count = counts.get((page, anchor), ("", ""))
        return (env.config.numfig_format[kind] % count).strip() if count else ""

    equations = {}
    for label, (page, own) in math.equations.items():
        anchor = f"equation-{make_id(label)}"
        _, count = counts.get((page, anchor), ("", str(own)))
        equations[label] = (page, anchor, f"({count})")
    literature = getattr(env.domains.get("cite"), "citations", [])
    return {
        "pages": {page: title.astext() for page, title in env.titles.items()},
        "labels": {
            name: (page, anchor, str(std.labels.get(name, (name,))[-1]), number(page, anchor))
            for name, (page, anchor) in std.anonlabels.items()
        },
        "equations": equations,
        "literature": {
            one.key: (one.bibliography_key.docname, one.citation_id, *who_and_when(one.entry))
            for one in literature
        },
        "unconfirmed": [one.anchor for one in claims_of(env) if not one.confirmed],
        "not_computed": {
            page: known["not_computed"]
            for page, known in env.metadata.items()
            if "not_computed" in known
        },
    }


def who_and_when(entry: Entry) -> tuple[str, str]:
    """ "Vaswani et al.", "Alpha and Beta" or "Alpha", and the year."""
    people = entry.persons.get("author") or entry.persons.get("editor") or []
    names = [
        re.sub(r"[{}]", "", " ".join([*person.prelast_names, *person.last_names]))
        for person in people
    ] or [entry.key]
    return f"{names[0]} et al." if len(names) > 2 else " and ".join(names), entry.fields["year"]


def write(app: Sphinx, exception: Exception | None) -> None:
    if exception is None:
        text = json.dumps(targets(app.env), ensure_ascii=False, indent=1)
        (Path(app.outdir).parent / NAME).write_text(text, "utf-8")


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write)
