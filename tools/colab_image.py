"""Run a release's notebooks inside Colab's own image, as a reader would (a weekly check).

    python3 -m tools.colab_image FOLDER       FOLDER: the published notebooks

Needs no environment of ours: the image's Python runs the notebooks, the install cell fetches the
published package, and nothing but that may be new afterwards.
"""

import sys
import tempfile
from pathlib import Path

import nbformat

from tools.colab_standin import child_environment, freeze
from tools.run_notebooks import install_as_a_reader_would, run_notebook
from website.pages.moved import notebooks_in


def main() -> int:
    if len(sys.argv) != 2:
        raise SystemExit("Which notebooks? make colab NOTEBOOKS=folder")
    python, folder = Path(sys.executable), Path(sys.argv[1])
    notebooks = {path.stem: nbformat.read(path, as_version=4) for path in notebooks_in(folder)}
    if not notebooks:
        raise SystemExit(f"No notebooks in {folder}.")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        scratch = Path(temporary)
        env = child_environment(python, scratch)
        reports = [install_as_a_reader_would(notebooks, python, scratch, env)]
        if reports == [None]:
            installed = freeze(python)
            for name, notebook in notebooks.items():
                reports.append(run_notebook(notebook, name, python, scratch, env))
                print(f"{name}: {'FAILED' if reports[-1] else 'ok'}", flush=True)
            if freeze(python) != installed:
                reports.append("a notebook changed what is installed")
    print("\n".join(report for report in reports if report), file=sys.stderr)
    return 1 if any(reports) else 0


if __name__ == "__main__":
    sys.exit(main())
