"""Ask every address outside the site that the built pages link to whether it still answers.

    python -m tools.links     the site in _build/html; fails when an address is gone

Only a clear "not found" counts (404, 410, an unknown host). A server that refuses robots or is
busy is reported and does not fail. It needs the network, so it runs weekly, not in ``make test``.
"""

import re
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r'<a\s[^>]*href="(https?://[^"#]+)')
AGENT = {"User-Agent": "Mozilla/5.0 (link check of a course book)"}
GONE = {404, 410}


def addresses(html: Path, own: str) -> dict[str, list[str]]:
    """Each outside address and the pages that link to it; none that begins with ``own``, the
    published site, which may be older than this build."""
    found: dict[str, list[str]] = {}
    for page in sorted(html.rglob("*.html")):
        for address in sorted(set(LINK.findall(page.read_text("utf8")))):
            if "/issues/new?" not in address and not address.startswith(own):  # one form for all
                found.setdefault(unescape(address), []).append(str(page.relative_to(html)))
    return found


def ask(address: str, timeout: float = 20) -> tuple[str, bool]:
    """What the server says, and whether the address is gone."""
    try:
        request = urllib.request.Request(address, headers=AGENT)
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return str(answer.status), False
    except urllib.error.HTTPError as error:
        return str(error.code), error.code in GONE
    except urllib.error.URLError as error:
        return str(error.reason), "not known" in str(error.reason)
    except (OSError, ValueError) as error:
        return str(error), False


def main() -> int:
    from website.pages.settings import read_settings  # it reads YAML; the rest is plain Python

    found = addresses(ROOT / "_build" / "html", read_settings(ROOT).site_url)
    if not found:
        raise SystemExit("No pages in _build/html: run make book first.")
    gone = 0
    with ThreadPoolExecutor(max_workers=8) as pool:
        for address, (answer, is_gone) in zip(found, pool.map(ask, found), strict=True):
            if answer != "200":
                pages = ", ".join(found[address][:3])
                print(f"{'GONE' if is_gone else 'note'} {address} ({answer}) in {pages}")
            gone += is_gone
    print(f"{len(found)} addresses, {gone} gone")
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main())
