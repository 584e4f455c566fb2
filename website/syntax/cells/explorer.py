"""Explorers with many maps come when the reader comes near: their data and script become a file.

The figure itself holds all it needs (src/vitbook/explorer). On a page of the book a large one would
weigh on everybody who opens the page, so what runs is written into ``_static/explorer`` and asked
for near the screen. Until then, without scripts and on paper, its still and its words stand there.
Where it will come, they have its height, so that nothing below it moves.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

LARGE = 100_000  # characters; an explorer with less stays in its page
FOLDER = "_static/explorer"
EXPLORER = re.compile(
    r'(?P<begin><div class="vitbook-explorer" data-key="(?P<key>\w+)".*?)<style onload="[^"]*">'
    r'(?P<style>.*?</style>)<script type="application/json">(?P<data>.*?)</script>'
    r"<script>(?P<script>.*?)</script>",
    re.DOTALL,
)
FILE = """(() => {
  const data = document.createElement("script");
  data.type = "application/json";
  data.textContent = DATA;
  document.currentScript.before(data);
})();
"""
LOADER = """(() => {
  const root = document.currentScript.parentElement, script = document.createElement("script");
  script.onerror = () => {
    root.querySelector("p").textContent =
      "The maps of this figure did not come. Loading the page again may help.";
    root.style.minHeight = 0;
  };
  new IntersectionObserver((entries, watch) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watch.disconnect();
    script.src = "ADDRESS";
    root.append(script);
  }, { rootMargin: "800px" }).observe(root);
})();"""

ROOM = "@container {layout} {{ .vitbook-explorer[data-key='{key}'] {{ min-height: {height}; }} }}"
PARENT = ":has(> .vitbook-explorer[data-key='{key}']) {{ container-type: inline-size; }}"


def room(key: str, data: Mapping[str, Any]) -> str:
    """CSS: how high the figure of these data will be, by counting its parts in rem, for each layout
    of vitbook/explorer/figure.css and a square image."""
    pickers = 5.4 * (1 + 2 * (data["channels"] == 3) + (data["layers"] > 1))  # rows of buttons
    pickers += 7 * (len(data["labels"]) > 1)  # chips of the images
    tokens, notes, layers = 3.5 * (data["prefix"] > 0), 1.5 * len(data["notes"]), data["layers"]
    below = 38 + pickers + tokens + notes + 3 * layers
    heights = {
        "(width < 35rem)": f"calc(50cqi + {below:.1f}rem)",  # one below the other
        "(35rem <= width < 44rem)": f"{40.5 + tokens + notes + 5.5 * layers:.1f}rem",  # two columns
        "(width >= 44rem)": f"{16.5 + pickers + notes + 1.6 * layers:.1f}rem",  # small maps in one
    }
    rules = [ROOM.format(layout=at, key=key, height=height) for at, height in heights.items()]
    return (
        f"@media screen and (scripting: enabled) {{ {PARENT.format(key=key)} {' '.join(rules)} }}"
    )


def write_explorers(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """The large explorers of one page as files, and what asks for them in its tree."""
    if app.builder.format != "html":
        return

    def file(match: re.Match[str]) -> str:
        if len(match["data"]) < LARGE:
            return match[0]
        name = f"{FOLDER}/{match['key']}.js"
        path = Path(app.outdir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILE.replace("DATA", json.dumps(match["data"])) + match["script"], "utf8")
        address = relative_uri(app.builder.get_target_uri(docname), name)
        loader = LOADER.replace("ADDRESS", address)
        style = f"<style>{room(match['key'], json.loads(match['data']))} {match['style']}"
        return f"{match['begin']}{style}<script>{loader}</script>"

    for raw in doctree.findall(nodes.raw):
        if raw.get("format") == "html" and "vitbook-explorer" in raw.astext():
            raw.children = [nodes.Text(EXPLORER.sub(file, raw.astext()))]


def setup(app: Sphinx) -> None:
    app.connect("doctree-resolved", write_explorers)
