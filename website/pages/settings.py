"""The few settings that site and notebooks share, each read from where it is set."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from website.pages.contents import read_yaml, toc_files

GITHUB = "https://github.com/"
COLAB = "https://colab.research.google.com/github"
BRANCH = "gh-pages"  # what is published; its folders are the releases


@dataclass(frozen=True)
class Settings:
    """Where the book is published, and which release this build is.

    A release stands under its own address for good, ``<site>/v1.2.0/``: pages, notebooks and the
    package's wheel of one build. Notebooks lead there and nowhere else, so that a notebook which
    somebody keeps goes on working with what it was made with.
    """

    root: Path
    book: Path  # the folder of the pages
    title: str
    site_url: str  # address of the published site, with a trailing slash
    repository: str  # address of the repository, without a trailing slash
    version: str  # of the package, and so of the whole build
    documents: tuple[str, ...]  # page names in the order of the table of contents
    bib_files: tuple[Path, ...]

    @property
    def tag(self) -> str:
        """The tag and the folder of this release."""
        return f"v{self.version}"

    @property
    def release_url(self) -> str:
        """Address of this release's own folder, with a trailing slash."""
        return f"{self.site_url}{self.tag}/"

    @property
    def wheel(self) -> str:
        """File name of the package of this build; it lies beside the notebooks."""
        return f"vitbook-{self.version}-py3-none-any.whl"

    @property
    def wheel_url(self) -> str:
        """What a notebook installs where no wheel lies beside it."""
        return f"{self.release_url}notebooks/{self.wheel}"

    @property
    def colab_url(self) -> str:
        """Address, in Colab, of the folder with this release's notebooks."""
        _, _, path = self.repository.partition(GITHUB)
        return f"{COLAB}/{path}/blob/{BRANCH}/{self.tag}/notebooks/"

    @property
    def commit(self) -> str:
        """What links into the repository point at: the tag, or between two releases main."""
        return "main" if ".dev" in self.version else self.tag

    def source(self, document: str) -> Path:
        """The Markdown file of a page.

        Raises:
            FileNotFoundError: There is none.
        """
        path = self.book / f"{document}.md"
        if not path.is_file():
            raise FileNotFoundError(f"_toc.yml lists {document}, but there is no {path.name}")
        return path

    def file_url(self, path: Path) -> str:
        """Address of a file of the repository at the release's commit."""
        return f"{self.repository}/blob/{self.commit}/{path.relative_to(self.root).as_posix()}"

    def raw_url(self, path: Path) -> str:
        """Address of a file's bytes (an image's, say) at the release's commit."""
        return f"{self.repository}/raw/{self.commit}/{path.relative_to(self.root).as_posix()}"


def read_settings(root: Path) -> Settings:
    """Read ``_config.yml`` and ``_toc.yml`` of the book at ``root``.

    The repository's address is ``url`` under ``repository:``. The site's address is
    ``html: baseurl:``; without it, the GitHub Pages address of the repository. The version stands
    in pyproject.toml.
    """
    root = root.resolve()
    config, toc = read_yaml(root / "_config.yml"), read_yaml(root / "_toc.yml")
    repository = config["repository"]["url"].rstrip("/").removesuffix(".git")
    book = root / config["repository"].get("path_to_book", ".")
    bib_files = config.get("sphinx", {}).get("config", {}).get("bibtex_bibfiles", [])
    return Settings(
        root=root,
        book=book,
        title=config["title"],
        site_url=(config.get("html", {}).get("baseurl") or pages_url(repository)).rstrip("/") + "/",
        repository=repository,
        version=version_of(root),
        documents=tuple(toc_files(toc)),
        bib_files=tuple(book / name for name in bib_files),
    )


def version_of(root: Path) -> str:
    """The version of the package, which is that of the whole build: from pyproject.toml."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["version"]


def pages_url(repository: str) -> str:
    """The GitHub Pages address of a GitHub repository."""
    match = re.fullmatch(r"https://github\.com/([^/]+)/([^/]+)", repository)
    if match is None:
        raise ValueError(f"_config.yml needs html: baseurl:, because {repository} is not on GitHub")
    return f"https://{match[1].lower()}.github.io/{match[2]}/"
