"""The few settings the notebooks need, each read from the one place where it is set."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Settings:
    """Where the book lives and which release its notebooks install."""

    root: Path
    book: Path  # the folder of the pages
    title: str
    site_url: str  # address of the built site, with a trailing slash
    repository: str  # address of the repository, without a trailing slash
    tag: str  # the release a notebook installs and links to
    documents: tuple[str, ...]  # page names in the order of the table of contents
    bib_files: tuple[Path, ...]

    @property
    def requirement(self) -> str:
        """What pip installs: the package at the release tag."""
        return f"vitbook @ git+{self.repository}@{self.tag}"

    def source(self, document: str) -> Path:
        """The Markdown file of a page. Raises FileNotFoundError where there is none."""
        path = self.book / f"{document}.md"
        if not path.is_file():
            raise FileNotFoundError(f"_toc.yml lists {document}, but there is no {path.name}")
        return path

    def file_url(self, path: Path) -> str:
        """Address of a file of the repository at the release tag."""
        return f"{self.repository}/blob/{self.tag}/{path.relative_to(self.root).as_posix()}"

    def raw_url(self, path: Path) -> str:
        """Address of a file's bytes (an image's, say) at the release tag."""
        return f"{self.repository}/raw/{self.tag}/{path.relative_to(self.root).as_posix()}"


def read_settings(root: Path) -> Settings:
    """Read `_config.yml` and `_toc.yml` of the book at `root`.

    The repository's address and the release tag are `url` and `branch` under `repository:`. The
    site's address is `html: baseurl:`; without it, the GitHub Pages address of the repository.
    """
    root = root.resolve()
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    repository = config["repository"]["url"].rstrip("/").removesuffix(".git")
    book = root / config["repository"].get("path_to_book", ".")
    bib_files = config.get("sphinx", {}).get("config", {}).get("bibtex_bibfiles", [])
    return Settings(
        root=root,
        book=book,
        title=config["title"],
        site_url=(config.get("html", {}).get("baseurl") or pages_url(repository)).rstrip("/") + "/",
        repository=repository,
        tag=config["repository"]["branch"],
        documents=tuple(toc_files(toc)),
        bib_files=tuple(book / name for name in bib_files),
    )


def pages_url(repository: str) -> str:
    """The GitHub Pages address of a GitHub repository."""
    match = re.fullmatch(r"https://github\.com/([^/]+)/([^/]+)", repository)
    if match is None:
        raise ValueError(f"_config.yml needs html: baseurl:, because {repository} is not on GitHub")
    return f"https://{match[1].lower()}.github.io/{match[2]}/"


def toc_files(node: object) -> list[str]:
    """Every page of a table of contents, depth first."""
    if isinstance(node, list):
        return [name for item in node for name in toc_files(item)]
    if not isinstance(node, dict):
        return []
    own = [node[key].removesuffix(".md") for key in ("root", "file") if key in node]
    nested = ("parts", "chapters", "sections", "subtrees", "entries")
    return own + [name for key in nested for name in toc_files(node.get(key, []))]
