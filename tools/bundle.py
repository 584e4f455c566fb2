"""One zip for places without network: all notebooks, the package, and how to begin.

    python -m tools.bundle      _build/attention-patch-by-patch-VERSION.zip (make bundle)

A notebook's first cell installs the wheel that lies beside it, and names what else is missing.
"""

import sys
import zipfile
from pathlib import Path

from vitbook.book.needed import NEEDED
from website.pages.moved import notebooks_in
from website.pages.settings import Settings, read_settings

ROOT = Path(__file__).resolve().parents[1]
README = """\
# {title}, {version}

Unpack this folder and open a notebook in it with Jupyter. Its first cell installs the course's
package from {wheel}, which lies beside it: keep them together. No network is needed.

What Python has to have already: {needed}.
Some chapters compare with timm: pip install timm, where there is a network.

The pages, with all figures and results: {site}
"""


def bundle(settings: Settings, folder: Path, target: Path) -> Path:
    """Write the zip of the built notebooks in ``folder``; returns its path.

    Raises:
        ValueError: ``folder`` lacks the notebooks or this version's wheel.
    """
    files = sorted([*notebooks_in(folder), *folder.glob(settings.wheel)])
    if settings.wheel not in {path.name for path in files} or len(files) < 2:
        raise ValueError(f"{folder} lacks the notebooks or {settings.wheel}: run make book first")
    name = f"{settings.repository.rsplit('/', 1)[-1]}-{settings.version}"
    text = README.format(
        title=settings.title,
        version=settings.version,
        wheel=settings.wheel,
        needed=", ".join(NEEDED.values()),
        site=settings.release_url,
    )
    path = target / f"{name}.zip"
    part = path.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/README.md", text)
        for file in files:
            archive.write(file, f"{name}/{file.name}")
    part.replace(path)
    return path


def main() -> int:
    build = ROOT / "_build"
    try:
        path = bundle(read_settings(ROOT), build / "html" / "notebooks", build)
    except ValueError as error:
        raise SystemExit(f"make bundle: {error}") from None
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
