"""A live figure as it is written: what to try and what one should see, above a line ``+++``; below
it the still, which stands there for readers without JavaScript, on paper's place and in notebooks.

    ```{live} cut
    :title: Cut the arrow
    :scripts: vit
    :data: cut
    Cut the thickest arrow. The answer hardly moves, although the map promised everything.
    +++
    Without it the model still says "different".
    ```

``scripts`` are shared ones that the figure needs besides its own, ``data`` is a module of
tools/live that writes what it reads. A sentence sets the figure of its page by the role

    {live}`the arrow in head 3 <cut layer=1 head=3>`

Site, notebooks and the rules for the sources all read it here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

OPTIONS = ("title", "scripts", "data")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
SETTING = re.compile(r"(?P<words>.+?)\s*<(?P<name>\S+)(?P<values>(\s+\S+)+)>", re.DOTALL)
VALUE = re.compile(r"(?P<key>[a-z]+)=(?P<value>[\w.,-]+)")


@dataclass(frozen=True)
class Live:
    """One live figure; ``words`` and ``still`` are lines."""

    name: str
    title: str
    words: tuple[str, ...]
    still: tuple[str, ...]
    scripts: tuple[str, ...] = ()
    data: str = ""

    @property
    def anchor(self) -> str:
        return f"live-{self.name}"

    @property
    def still_at(self) -> int:
        """The line of the body, counted from 0, where the still begins."""
        return len(self.words) + 1


@dataclass(frozen=True)
class Setting:
    """What a link in a sentence asks of a figure."""

    words: str
    name: str
    values: dict[str, str] = field(default_factory=dict)


def read_live(name: str, options: Mapping[str, str], body: Sequence[str]) -> Live:
    """Read the parts of a live figure.

    Raises:
        ValueError: Something is wrong; the message says what.
    """
    name = name.strip()
    given = {key: (options.get(key) or "").strip() for key in OPTIONS}
    for one in (name, *given["scripts"].split(), *given["data"].split()):
        if not NAME.fullmatch(one):
            raise ValueError(f"{one!r} is not lower-case words joined by hyphens")
    if not given["title"]:
        raise ValueError(f"the live figure {name} has no :title:")
    marks = [at for at, line in enumerate(body) if line.strip() == "+++"]
    at = marks[0] if marks else len(body)
    words, still = tuple(body[:at]), tuple(body[at + 1 :])
    if not "".join(words).strip():
        raise ValueError(f"the live figure {name} does not say what to try and what one sees")
    if not "".join(still).strip():
        raise ValueError(f"the live figure {name} has no still below a line +++")
    return Live(name, given["title"], words, still, tuple(given["scripts"].split()), given["data"])


def read_setting(content: str) -> Setting:
    """Read the content of a role: ``words <name key=value ...>``.

    Raises:
        ValueError: It is not of that form.
    """
    match = SETTING.fullmatch(content.strip())
    pairs = [VALUE.fullmatch(one) for one in match["values"].split()] if match else [None]
    if match is None or None in pairs:
        raise ValueError(f"a setting is written words <figure key=value ...>, not {content!r}")
    values = {pair["key"]: pair["value"] for pair in pairs if pair}
    return Setting(match["words"], match["name"], values)
