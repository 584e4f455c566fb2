"""What stands in a line of a page: its roles (website/syntax), links, images and formulas."""

import re
from collections.abc import Callable
from pathlib import Path

from website.notebooks.targets import Targets
from website.pages.contents import places_of
from website.pages.markdown import display_math, one_line_math
from website.pages.myst import PageError, Piece, substitute
from website.pages.settings import Settings


class PageLinks:
    """Resolves the inline syntax of one page against the built site.

    Args:
        settings: The book's settings.
        site: What the built site knows.
        document: The page's name in the table of contents.
        roles: What writes a role as Markdown, by its name: (content, links) -> Markdown.
    """

    def __init__(
        self, settings: Settings, site: Targets, document: str, roles: dict[str, Callable[..., str]]
    ) -> None:
        self.settings, self.site, self.document = settings, site, document
        self.roles = roles
        self.folder = settings.source(document).parent
        self.places = places_of(settings.root)

    def plain(self, text: str, path: Path, line: int) -> str:
        """``text`` with its MyST syntax as plain Markdown; labels and comments are dropped."""

        def replace(piece: Piece) -> str | None:
            try:
                return self._piece(piece, text)
            except (KeyError, ValueError) as error:
                at = line + text.count("\n", 0, piece.start)
                raise PageError(path, at, str(error.args[0])) from error

        return re.sub(r"\n{3,}", "\n\n", substitute(text, replace)).strip("\n")

    def _piece(self, piece: Piece, text: str) -> str | None:
        match piece.kind:
            case "role":
                if piece.name not in self.roles:
                    raise KeyError(f"the role {{{piece.name}}} is not translated")
                return self.roles[piece.name](" ".join(piece.content.split()), self)
            case "block":
                number = self.site.equation(piece.name)[0] if piece.name else ""
                before = text[: piece.start].rpartition("\n")[2]
                math = display_math(piece.content, number)
                return one_line_math(math) if before.strip() else math.replace("\n", f"\n{before}")
            case "image":
                return self.image(piece.name, piece.content)
            case "link":
                words = text[piece.start - 1] != "["  # else the title of what it leads to
                title = "" if words else self.title(piece.content)
                return piece.source.replace(
                    f"]({piece.content}", f"{title}]({self.link(piece.content)}", 1
                )
            case "dropped":
                return ""
            case "unknown":
                raise ValueError(f"{piece.content} is not translated")
        return None

    def image(self, alt: str, source: str) -> str:
        """Markdown for an image; a local one is linked at the release tag."""
        if not alt.strip():
            raise ValueError(f"the image {source} has no alt text")
        if not _is_address(source):
            source = self.settings.raw_url(self._file(source))
        return f"![{alt}]({source})"

    def link(self, target: str) -> str:
        """The address behind the target of a Markdown link."""
        return target if _is_address(target) else self._resolve(target)[1]

    def title(self, target: str) -> str:
        """The text of a link that has none of its own."""
        if _is_address(target):
            raise ValueError(f"the link to {target} has no text")
        return self._resolve(target)[0]

    def _resolve(self, target: str) -> tuple[str, str]:
        name, _, anchor = target.partition("#")
        if not name or "." not in name:
            return self.site.label(anchor or name)
        if not name.endswith(".md"):
            path = self._file(name)
            return path.name, self.settings.file_url(path)
        if anchor:
            return self.site.label(anchor)
        return self.site.document(self.document_called(name.removesuffix(".md")))

    def numbered(self, title: str) -> str:
        """The title of this page with the number of its chapter, as the site shows it."""
        place = self.places.get(self.document)
        return place.titled(title) if place else title

    @property
    def here(self) -> tuple[str, str]:
        """Title and address of this page."""
        return self.site.document(self.document)

    @staticmethod
    def split(content: str) -> tuple[str, str]:
        """("text", "target") of ``text <target>``; no text where there is only a target."""
        if content.endswith(">") and " <" in content:
            text, _, target = content[:-1].rpartition(" <")
            return text, target
        return "", content

    def source(self, document: str) -> Path:
        return self.settings.book / f"{document}.md"

    def document_called(self, name: str) -> str:
        """A page's name in the table of contents, from a name relative to this page."""
        if name.startswith("/"):
            return name[1:]
        path = (self.folder / name).resolve()
        return path.relative_to(self.settings.book).as_posix()

    def _file(self, name: str) -> Path:
        path = (self.folder / name).resolve()
        if not path.is_file() or self.settings.root not in path.parents:
            raise KeyError(f"the repository has no file {name}")
        return path


def _is_address(target: str) -> bool:
    return target.startswith(("https://", "http://", "mailto:"))
