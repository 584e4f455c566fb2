"""The foot of every page: a link to report a mistake on it, and which release the page is of.

The link opens a new issue on GitHub, in the form ``.github/ISSUE_TEMPLATE/reader.yml``, with page
and release filled in. ``_static/report.js`` adds the sentence that the reader has marked and the
heading above it. Where the settings name no repository on GitHub, the same lines are a text to be
copied. The release leads to what has changed since, on the page of the newest one.
"""

import html
import re
from pathlib import Path
from urllib.parse import urlencode

from sphinx.application import Sphinx

from website.pages.settings import GITHUB, read_settings
from website.theme.changes import PAGE, anchor
from website.theme.page import Page, each_page

ROOT = Path(__file__).resolve().parents[2]
FORM = "reader.yml"  # its fields: page, release, section, sentence
WORDS = "Report a mistake"


def report(page: str, title: str, release: str, repository: str) -> str:
    """A link to the form, or without a repository on GitHub a text to be copied.

    Args:
        page: file name of the page in the site, ``vit/patches.html``.
        title: its title, without markup.
        release: the version of the build.
        repository: its address, "" for none.
    """
    if repository.startswith(GITHUB):
        filled = {"template": FORM, "title": f"Mistake: {title}", "page": page, "release": release}
        address = html.escape(f"{repository.rstrip('/')}/issues/new?{urlencode(filled)}")
        marked = '<span class="report-marked"></span>'
        link = f'<a class="report-link" href="{address}">{WORDS}{marked}</a>'
        return f'<span class="report">{link}{forget()}</span>'
    lines = html.escape(f"Page: {page}\nRelease: {release}\n")
    return (
        f'<details class="report"><summary>{WORDS}<span class="report-marked"></span></summary>'
        "<p>Send these lines, and what is wrong, to the people from whom you have this book.</p>"
        f'<pre class="report-text">{lines}</pre>'
        f'<button type="button" class="report-copy" hidden>Copy</button>{forget()}</details>'
    )


def forget() -> str:
    return '<button type="button" class="report-forget" hidden>Leave the sentence out</button>'


def since(release: str) -> str:
    """The release, as a link; the newest page knows no place for what is not released yet."""
    place = "" if ".dev" in release else f"#{anchor(release)}"
    address = f"{read_settings(ROOT).site_url}{PAGE}.html{place}"
    title = "What changed since this release"
    return f'<a href="{html.escape(address)}" title="{title}">Release {html.escape(release)}</a>.'


def add_foot(page: Page) -> None:
    title = html.unescape(re.sub(r"<[^>]*>", "", page.context.get("title") or page.name))
    repository = page.app.config.html_theme_options.get("repository_url") or ""
    foot = report(f"{page.name}.html", title, page.app.config.release, repository)
    source = f'<a href="{html.escape(repository)}">Source code</a>. ' if repository else ""
    rest = f"{since(page.app.config.release)} {source}{page.context.get('theme_extra_footer', '')}"
    page.context["theme_extra_footer"] = f"{foot} {rest}"


def setup(app: Sphinx) -> None:
    each_page(app, add_foot)
