"""Gradescope runs the grader: a zip to upload there, and what its container calls.

The zip holds this grader, the package of the assignment and two scripts. In the container the
submission is marked as everywhere; Gradescope gets the points of each question and shows what the
feedback page would show, and no hidden test.
"""

import argparse
import json
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gradebox.assignment import Assignment, read_assignment
from gradebox.collect import choose
from gradebox.feedback import WORDS, clean, hidden_tests
from gradebox.grades import STATUS, rounded
from gradebox.platforms.handed import Handed
from gradebox.reading import NotReadableError
from gradebox.result import QuestionResult, Result
from gradebox.sandbox import NoSandboxError, folder_of
from gradebox.sources import InputError, open_source
from vitbook.files import write_atomically

OURS = ("vitbook", "vitcheck", "gradebox")
NEEDED = (
    *("torch", "torchvision", "numpy", "einops", "safetensors", "tqdm", "pyyaml"),
    *("matplotlib", "scikit-learn", "scipy", "pillow"),
)
TEMPLATES = Path(__file__).parent / "templates"


def write_zip(path: Path, package: Path) -> None:
    """Write the zip that Gradescope asks for as "autograder".

    Raises:
        InputError: The package cannot be read.
    """
    read_assignment(package)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name in ("setup.sh", "run_autograder"):
            member = zipfile.ZipInfo(name)
            member.external_attr = 0o755 << 16
            out.writestr(member, (TEMPLATES / f"gradescope_{name}").read_text("utf-8"))
        out.writestr("requirements.txt", "\n".join(filter(None, map(_pinned, NEEDED))) + "\n")
        out.write(package, "package.gradebox.zip")
        for name in OURS:
            root = folder_of(name)
            for file in sorted(root.rglob("*")):
                if file.is_file() and not {"__pycache__", "recorded"} & set(file.parts):
                    out.write(file, f"packages/{name}/{file.relative_to(root).as_posix()}")


def _pinned(name: str) -> str:
    """The version that marks here, without its local part ("+cpu")."""
    try:
        return f"{name}=={version(name).partition('+')[0]}"
    except PackageNotFoundError:
        return ""


def results(assignment: Assignment, result: Result) -> dict:
    """What Gradescope reads: a score for each question, and words that every student may see."""
    if result.status != "ok":
        words = f"{STATUS.get(result.status, 'not marked')}. {result.detail}"
        return {"score": 0, "output": _text(words), "output_format": "html"}
    by_hand = [question.title for question in assignment.questions if question.manual]
    said = f"Marked by a person, later: {', '.join(by_hand)}." if by_hand else ""
    said += "".join(f"\nStopped: {one}" for one in result.stopped)
    tests = [_test(one) for one in result.questions if not one.manual]
    return {"output": _text(said), "output_format": "html", "visibility": "visible", "tests": tests}


def _test(one: QuestionResult) -> dict:
    words = [WORDS.get(one.status, ""), one.message if WORDS.get(one.status) else ""]
    public = [case for case in one.cases if case.public]
    for at, case in enumerate(public, 1):
        words.append(f"Public check {at}: {'passed' if case.passed else case.message or 'failed'}")
    words.append(hidden_tests(one))
    if one.hint:
        words.append(f"Think about this: {one.hint}")
    output = _text("\n".join(filter(None, words)))
    about = {"name": one.title, "score": rounded(one.points or 0.0), "max_score": one.possible}
    return about | {"output": output, "output_format": "html"}


def _text(words: str) -> str:
    return f"<pre>{clean(words)}</pre>" if words.strip() else ""


def main(arguments: list[str] | None = None) -> int:
    """Mark the one submission of this container."""
    parser = argparse.ArgumentParser(prog="gradebox.hosted")
    for name in ("submission", "package", "results"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args(arguments)
    found = _mark(options.submission, options.package)
    write_atomically(options.results, json.dumps(found, indent=1).encode())
    return 0


def _mark(submission: Path, package: Path) -> dict:
    from gradebox.marking import mark
    from gradebox.package import load_package

    try:
        data = choose(Handed("student", tuple(open_source(submission)))).read()
    except (NotReadableError, InputError) as error:
        return {"score": 0, "output": _text(str(error)), "output_format": "html"}
    notebook = package.parent / "submission.ipynb"
    notebook.write_bytes(data)
    try:
        result = mark(notebook, load_package(package))
    except NoSandboxError as error:  # without a score Gradescope calls it a failed autograder
        print(error, file=sys.stderr)
        return {"output": "The grader has no sandbox here. Please tell your instructor."}
    if result.status == "crashed":
        print(result.detail, file=sys.stderr)
        return {"output": "The grader failed. Please tell your instructor."}
    return results(read_assignment(package), result)


if __name__ == "__main__":
    sys.exit(main())
