"""A paper has one year: that of the bibliography, wherever its authors are named."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"\b([A-Z][\w-]+)(?: et al\.|,? and [A-Z][\w-]+),? \(?((?:19|20)\d\d)\b")
FIRST_AUTHOR = re.compile(r"author\s*=\s*\{([^,}]+)")
YEAR = re.compile(r"year\s*=\s*\{(\d+)")


def years() -> dict[str, set[str]]:
    """The years of each first author's papers, by surname."""
    found: dict[str, set[str]] = {}
    for entry in re.split(r"\n@", (ROOT / "book" / "references.bib").read_text("utf-8")):
        author, year = FIRST_AUTHOR.search(entry), YEAR.search(entry)
        if author and year:
            found.setdefault(author[1].split()[-1], set()).add(year[1])
    return found


def test_a_year_beside_authors_is_that_of_the_bibliography():
    known, wrong = years(), []
    assert "2023" in known["Trockman"]
    sources = [ROOT.glob("src/**/*.py"), ROOT.glob("book/*/*.md"), ROOT.glob("assignments/*.md")]
    for path in sorted(path for paths in sources for path in paths):
        for said, author, year in (
            (match[0], match[1], match[2]) for match in NAMED.finditer(path.read_text("utf-8"))
        ):
            if year not in known.get(author, {year}):
                wrong.append(f"{path.relative_to(ROOT)}: {said}, not {sorted(known[author])}")
    assert not wrong, "\n".join(wrong)
