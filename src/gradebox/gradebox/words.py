"""What students wrote, as a part of our own sentences: it must not read as if we had said it."""

from __future__ import annotations

import unicodedata

# Besides those that Unicode calls quotes: wide ones, marks that look like them, corner brackets.
QUOTES = set('"\uff02\u2033\u3003\u02ba\u300c\u300d\u300e\u300f\u301d\u301e\u301f')


def quoted(text: str, most: int = 60) -> str:
    """Somebody else's words: on one line, cut, and in quotes that they cannot close. Semicolons,
    which stand between notes, become commas."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 10 * most]).split())
    kept = "".join("'" if is_quote(c) else "," if c in ";\uff1b\u037e" else c for c in line[:most])
    return f'"{kept}{"..." if len(line) > most or len(text) > 10 * most else ""}"'


def is_quote(letter: str) -> bool:
    return letter in QUOTES or unicodedata.category(letter) in {"Pi", "Pf"}
