"""Otter's marks in a solution: the solution without them, and what they leave to the student."""

import re


def without_marks(solution: str) -> str:
    """The solution as it runs: otter's marks taken off."""
    lines = (re.sub(r" *# SOLUTION( NO PROMPT)?$", "", line) for line in solution.splitlines())
    marks = r"\s*# (BEGIN|END) SOLUTION( NO PROMPT)?\s*"
    return "\n".join(line for line in lines if not re.fullmatch(marks, line))


def stub_of(solution: str) -> str:
    """What the student gets: otter's rules, each answer replaced by ``...``."""
    out: list[str] = []
    inside = ""
    for line in solution.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        mark = line.strip()
        if inside:
            inside = "" if mark == "# END SOLUTION" else inside
        elif mark in ("# BEGIN SOLUTION", "# BEGIN SOLUTION NO PROMPT"):
            inside = mark
            out += [] if mark.endswith("NO PROMPT") else [f"{indent}..."]
        elif line.endswith("# SOLUTION NO PROMPT"):
            continue
        elif line.endswith("# SOLUTION"):
            assigned = re.match(r"( *[\w.\[\], ]+ = )", line)
            out.append(f"{assigned[1]}..." if assigned else f"{indent}...")
        else:
            out.append(line)
    return "\n".join(out)
