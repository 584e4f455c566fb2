"""What each role, link and image of one page becomes in its notebook."""

from __future__ import annotations

import re
from pathlib import Path

from tools.contents import CHAPTER, chapter_called, places_of
from tools.counts import count_file, hours
from tools.pages import depth
from tools.pages.live import read_setting
from tools.pages.myst import PageError, Piece, substitute
from tools.pages.number import TITLE
from tools.settings import Settings

from .targets import Targets


class PageLinks:
    """Resolves the inline syntax of one page against the built site.

    Args:
        settings: The book's settings.
        site: What the built site knows.
        document: The page's name in the table of contents.
    """

    def __init__(self, settings: Settings, site: Targets, document: str) -> None:
        self.settings, self.site, self.document = settings, site, document
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
                return self.role(piece.name, " ".join(piece.content.split()))
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

    def role(self, name: str, content: str) -> str:
        """Markdown for one role.

        Raises:
            KeyError: The role is not known here.
        """
        text, target = split_target(content)
        match name:
            case "glue:text":
                key, _, spec = content.rpartition(":") if ":" in content else (content, "", "s")
                return self.site.glued(self.document, key, spec)
            case "cite" | "cite:t":
                return self._cite(content, textual=name == "cite:t")
            case "ref":
                return markdown_link(text, *self.site.label(target))
            case "eq":
                return markdown_link("", *self.site.equation(content))
            case "doc":
                return markdown_link(text, *self.site.document(self._document(target)))
            case "chapter":
                return self._chapter(text or CHAPTER, target)
            case "in-depth":
                title, address = self.site.document(self._document(target))
                return markdown_link(text, depth.named(title), address)
            case "live":
                setting = read_setting(content)
                _, address = self.site.document(self.document)
                return markdown_link(setting.words, "", f"{address}#live-{setting.name}")
            case "minutes":
                return self._minutes(content)
        raise KeyError(f"the role {{{name}}} is not translated")

    def _cite(self, keys: str, *, textual: bool) -> str:
        cited = []
        for who, year, url in (self.site.cited(key.strip()) for key in keys.split(",")):
            cited.append(f"[{who} ({year})]({url})" if textual else f"[{who}, {year}]({url})")
        return ", ".join(cited) if textual else f"({'; '.join(cited)})"

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
        return self.site.document(self._document(name.removesuffix(".md")))

    def numbered(self, title: str) -> str:
        """The title of this page with the number of its chapter, as the site shows it."""
        place = self.places.get(self.document)
        return place.titled(title) if place else title

    def _chapter(self, words: str, target: str) -> str:
        """A link to a chapter, or to a label in it, whose words hold the chapter's number."""
        page, address = chapter_called(target, self.places), ""
        if page is None:
            page = self.site.page_of(target)
            _, address = self.site.label(target)
        if page not in self.places:
            raise KeyError(f"no chapter and no label in one is called {target}")
        title, top = self.site.document(page)
        number = self.places[page].number
        words = words.format(number=number, name=TITLE.sub("", title, count=1))
        here = page == self.document and not address
        return words if here else f"[{words}]({address or top})"

    def _minutes(self, content: str) -> str:
        """The minutes of this page, one of the two numbers of another page, or hours of several."""
        wanted, *names = content.split() if content != "this page" else ("",)
        documents = [self._document(name) for name in names] or [self.document]
        paths = [self.settings.book / f"{document}.md" for document in documents]
        for name, path in zip(names, paths, strict=False):
            if not path.is_file():
                raise KeyError(f"minutes of {name}: there is no page {name}")
        if wanted == "hours":
            return hours(paths)
        counts = count_file(paths[0])
        return str({"": counts, "read": counts.read, "do": counts.do}[wanted])

    def _document(self, name: str) -> str:
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


def display_math(tex: str, number: str = "") -> str:
    """Block math for a notebook, on lines of its own; ``number`` is the book's, such as "(3)"."""
    tex = re.sub(r"(?<!\\)%.*", "", tex).strip("\n")
    tag = rf" \tag{{{number.strip('()')}}}" if number else ""
    return f"$$\n{tex.strip()}{tag}\n$$"


def one_line_math(markdown: str) -> str:
    """Join block math into single lines: in a quote, the ``>`` marks would enter the formula."""
    return re.sub(
        r"\$\$\n(.+?)\n[ ]*\$\$",
        lambda match: "$$" + " ".join(match[1].split()) + "$$",
        markdown,
        flags=re.DOTALL,
    )


def split_target(content: str) -> tuple[str, str]:
    """("text", "target") of ``text <target>``; an empty text where there is only a target."""
    if content.endswith(">") and " <" in content:
        text, _, target = content[:-1].rpartition(" <")
        return text, target
    return "", content


def markdown_link(text: str, title: str, url: str) -> str:
    return f"[{text or title}]({url})"


def _is_address(target: str) -> bool:
    return target.startswith(("https://", "http://", "mailto:"))
