"""What was handed in, as a list of entries: a folder or a zip file, read with the same care.

Nothing is unpacked. An entry has a name to look at and a function that returns its bytes, up to a
limit; its name is never used as a path. So a name with ``../`` leads nowhere, a link is not
followed, and an archive that would unpack to gigabytes is cut off.
"""

import io
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from gradebox.reading import NotReadableError, limited, read_file

MOST_ENTRIES = 200_000  # of one archive
MOST_LETTERS, MOST_FOLDERS = 1_000, 32  # of a name in an archive; above, it stands for itself
# Python unpacks these piece by piece; of bzip2 and LZMA all at once, however large it gets.
CUT_OFF = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
NOISE = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"}  # what systems leave behind
CHECKPOINTS = ".ipynb_checkpoints"
ESCAPED = r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"  # in the place of a letter
EMPTY = "(an empty folder)"  # in the place of a file
TOO_LONG = "(a name that is too long)"
LISTS = {".csv", ".tsv", ".xlsx", ".yml", ".yaml"}  # that lie beside what was handed in


class InputError(Exception):
    """Something the instructor gave cannot be used; the text is one sentence that says what."""


@dataclass(frozen=True)
class Entry:
    """A file inside a folder or an archive."""

    path: PurePosixPath  # as it is called there
    read: Callable[[], bytes]  # raises NotReadableError

    @property
    def suffix(self) -> str:
        """As ``Path.suffix``, but that of ".ipynb" is ".ipynb"."""
        return f".{self.path.name.rpartition('.')[2].lower()}" if "." in self.path.name else ""

    @property
    def hidden(self) -> bool:
        """Is it, or a folder around it, of those that a file manager does not show?"""
        return any(part.startswith(".") and part != ".." for part in self.path.parts)

    @property
    def noise(self) -> bool:
        """Did a system leave it behind?"""
        return not NOISE.isdisjoint(self.path.parts)

    @property
    def listing(self) -> bool:
        """Is it a list beside what was handed in?"""
        return len(self.path.parts) == 1 and self.suffix in LISTS


def open_source(path: Path) -> list[Entry]:
    """The files in a folder or a zip file, by name.

    Raises:
        InputError: It does not exist, or is neither.
    """
    if path.is_dir():
        found = list(_in_folder(path))
    elif path.is_file():
        try:
            found = in_zip(path)
        except NotReadableError as error:
            raise InputError(f"{path} is neither a folder nor a zip file ({error})") from error
    else:
        raise InputError(f"there is no folder or zip file {path}")
    return sorted(handed_in(found), key=lambda entry: str(entry.path))


def handed_in(entries: list[Entry]) -> list[Entry]:
    """Without noise and what is hidden at the top, where no student puts anything, unless it is a
    notebook; of "._x" there is an "x" if a Mac wrote it."""
    names = {str(entry.path) for entry in entries}

    def counts(entry: Entry) -> bool:
        top, *below = entry.path.parts
        if below or not entry.hidden:
            return top != CHECKPOINTS and top not in NOISE
        twin = top.removeprefix("._")
        return entry.suffix in {".ipynb", ".zip"} and (twin == top or twin not in names)

    return [entry for entry in entries if counts(entry)]


def _named(name: str) -> PurePosixPath:
    """A name that can be printed and written, and that no other name becomes: bytes that are no
    text, characters that nobody sees, and backslashes stand there as ``ESCAPED``."""
    return PurePosixPath("".join(map(_shown, name)))


def _shown(letter: str) -> str:
    code = ord(letter)
    if letter.isprintable() and letter != "\\":
        return letter
    if 0xDC80 <= code <= 0xDCFF:  # how Python keeps a byte that is no text
        return f"\\x{code - 0xDC00:x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _in_folder(root: Path) -> Iterator[Entry]:
    closed: list[OSError] = []
    for folder, folders, files in os.walk(root, onerror=closed.append):
        folders.sort()
        names = files + [name for name in folders if Path(folder, name).is_symlink()]
        if not files and not folders and Path(folder) != root:
            names = [EMPTY]
        for name in names:
            path = Path(folder, name)
            yield Entry(_named(path.relative_to(root).as_posix()), partial(read_file, path))
    for error in closed:
        path = Path(error.filename).relative_to(root)
        if not path.parts:
            raise InputError(f"{root} cannot be read ({error.strerror})")
        path /= f"(a folder that cannot be read: {error.strerror})"
        yield Entry(_named(path.as_posix()), partial(read_file, root / path))


def in_zip(archive: Path | bytes) -> list[Entry]:
    """The files inside a zip file.

    Raises:
        NotReadableError: It is broken, or holds too many files.
    """
    try:
        opened = zipfile.ZipFile(io.BytesIO(archive) if isinstance(archive, bytes) else archive)
        members = opened.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise NotReadableError("broken, or no zip file") from error
    if len(members) > MOST_ENTRIES:
        raise NotReadableError(f"{len(members)} files in one archive")
    found = []
    paths = [_in_archive(member) for member in members]
    folders = {path for path, member in zip(paths, members, strict=True) if member.is_dir()}
    filled = folders and {folder for path in paths for folder in path.parents} & folders
    for path, member in zip(paths, members, strict=True):
        if not path.name or (member.is_dir() and path in filled):
            continue
        path = path / EMPTY if member.is_dir() else path
        found.append(Entry(path, _member_reader(opened, member)))
    return found


def _in_archive(member: zipfile.ZipInfo) -> PurePosixPath:
    """The path of a member; of a name that no disk holds, its outermost folder is kept. A backslash
    parts folders where Windows packed them; elsewhere it is a letter, which a student may write."""
    name = member.filename.replace("\\", "/") if member.create_system == 0 else member.filename
    if len(name) <= MOST_LETTERS and name.count("/") < MOST_FOLDERS:
        return _named(name)
    return _named(name[:MOST_LETTERS].partition("/")[0][:100]) / TOO_LONG


def _member_reader(opened: zipfile.ZipFile, member: zipfile.ZipInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        drive = re.match(r"[A-Za-z]:[/\\]", member.filename)
        if (
            ".." in re.split(r"[/\\]", member.filename)
            or member.filename.startswith(("/", "\\"))
            or drive
        ):
            raise NotReadableError("its name leads out of the archive")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise NotReadableError("this is a link to another file; links are not followed")
        if member.flag_bits & 1:
            raise NotReadableError("the archive is locked with a password")
        if member.compress_type not in CUT_OFF:
            raise NotReadableError("the archive is packed in an unusual way; make an ordinary zip")
        try:
            with opened.open(member) as file:
                return limited(file)
        except NotReadableError:
            raise
        except Exception as error:  # broken archives raise nearly anything: zlib, struct, EOF
            raise NotReadableError("the archive is broken") from error

    return read
