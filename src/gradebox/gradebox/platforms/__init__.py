"""Exports of learning platforms: what their file names say about a student.

folder       STUDENT.ipynb, or a folder for each student with one notebook or several
canvas       Canvas, "Download Submissions": doejane_LATE_4711_815_answer.ipynb
moodle       Moodle, "Download all submissions": Jane Doe_4711_assignsubmission_file_/answer.ipynb
gradescope   Gradescope, "Export Submissions": submission_815/ and submission_metadata.yml
"""

from collections.abc import Callable

from gradebox.platforms import canvas, folder, gradescope, moodle
from gradebox.platforms.handed import Handed
from gradebox.sources import Entry

READERS: dict[str, Callable[[list[Entry]], list[Handed]]] = {
    "folder": folder.read,
    "canvas": canvas.read,
    "moodle": moodle.read,
    "gradescope": gradescope.read,
}


def recognise(entries: list[Entry]) -> str:
    """Which platform wrote these names. What is hidden, none did."""
    entries = [entry for entry in entries if not entry.hidden and not entry.noise]
    for name, platform in (("gradescope", gradescope), ("moodle", moodle), ("canvas", canvas)):
        if platform.wrote(entries):
            return name
    return "folder"
