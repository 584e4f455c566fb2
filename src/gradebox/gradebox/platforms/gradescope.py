"""Gradescope, "Export Submissions": submission_815/ folders and submission_metadata.yml.

The metadata are YAML as Ruby writes it: keys begin with a colon, and objects may carry tags of Ruby
classes. They are read as plain text: no tag ever makes an object, and no student's number a number.
"""

import re
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import yaml

from gradebox.platforms.folder import natural
from gradebox.platforms.handed import Handed
from gradebox.reading import NotReadableError
from gradebox.sources import Entry, InputError

METADATA = "submission_metadata.yml"
PLAIN: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # in C, where that is there


def wrote(entries: list[Entry]) -> bool:
    """Are there metadata above all other files? A student can hand in a file of that name."""
    folders = (entry.path.parent for entry in entries if entry.path.name == METADATA)
    return any(all(one.path.is_relative_to(folder) for one in entries) for folder in folders)


def read(entries: list[Entry]) -> list[Handed]:
    """A group's submission counts for each of its members. What the metadata do not name, and who
    has a name alone, which several may have, is kept under the name of the folder."""
    named = [entry for entry in entries if entry.path.name == METADATA]
    if not named:
        raise InputError(f"there is no {METADATA}, which Gradescope puts into its exports")
    where = min(named, key=lambda entry: len(entry.path.parts))
    files: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        inside = entry.path.is_relative_to(where.path.parent)
        path = entry.path.relative_to(where.path.parent) if inside else entry.path
        if entry is not where and not entry.listing:
            files[path.parts[0]].append(entry)
    metadata = _metadata(where)
    unnamed = [(folder, None) for folder in sorted(files) if folder not in metadata]
    found = []
    for folder, about in [*metadata.items(), *unnamed]:
        about = about if isinstance(about, dict) else {}
        for person in _people(about, folder):
            name, email, id = (str(person.get(key) or "") for key in (":name", ":email", ":sid"))
            student = id or email or folder
            when = _time(about.get(":created_at"))
            order = (when or datetime.min.replace(tzinfo=UTC), natural(PurePosixPath(folder)))
            found.append(Handed(student, tuple(files[folder]), order, name, email, submitted=when))
    return found


def _metadata(entry: Entry) -> dict[str, object]:
    try:
        read = yaml.load(entry.read(), PLAIN)
    except (yaml.YAMLError, NotReadableError, ValueError, RecursionError) as error:
        raise InputError(f"{METADATA} of the Gradescope export cannot be read") from error
    if not isinstance(read, dict):
        raise InputError(f"{METADATA} of the Gradescope export lists no submissions")
    return {str(folder): about for folder, about in read.items()}


def _people(about: dict, folder: str) -> list[dict]:
    people = about.get(":submitters")
    people = [one for one in people if isinstance(one, dict)] if isinstance(people, list) else []
    return people or [{":name": folder}]


def _time(value: object) -> datetime | None:
    """Gradescope writes times in UTC; a time without a zone is one of those."""
    if not isinstance(value, str) or ":" not in value:
        return None
    try:
        read = datetime.fromisoformat(re.sub(r"\s+(?=[-+UZ])", "", value).replace("UTC", "Z"))
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)
