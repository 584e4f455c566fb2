"""What students wrote, as a part of our own sentences: it must not read as if we had said it."""

import re
import unicodedata

# In the names of what is a quote or looks like one, such as a double prime or a gershayim. Letters
# that look so, such as a yod, are letters.
QUOTES = re.compile(
    "QUOTATION|APOSTROPHE|PRIME|GERSH|DITTO|CORNER BRACKET|(ACUTE|GRAVE) ACCENT|DOUBLE VERTICAL"
    "|(TURNED|REVERSED) COMMA|COMMA ABOVE|HALF RING|LETTER VERTICAL LINE|NIHSHVASA"
    "|GREEK (KORONIS|PSILI|DASIA|TONOS|VARIA|OXIA)"
)
SEMICOLONS = re.compile("SEMICOLON|GREEK QUESTION MARK")


def quoted(text: str, most: int = 60) -> str:
    """Somebody else's words: on one line, cut, and in quotes that they cannot close. Semicolons,
    which stand between notes, become commas."""
    text = unicodedata.normalize("NFC", text[: 10 * most + 1])  # accents are no marks of their own
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 10 * most]).split())
    kept = "".join("'" if is_quote(c) else "," if is_semicolon(c) else c for c in line[:most])
    kept = re.sub("''+", "'", kept)  # two of them look like a double one
    return f'"{kept}{"..." if len(line) > most or len(text) > 10 * most else ""}"'


def is_quote(letter: str) -> bool:
    """Is it a quotation mark, or what looks like one? A letter with an accent is none."""
    kind = unicodedata.category(letter)
    named = QUOTES.search(unicodedata.name(letter, "")) and kind not in {"Ll", "Lu", "Lt", "Lo"}
    return kind in {"Pi", "Pf"} or bool(named)


def is_semicolon(letter: str) -> bool:
    return bool(SEMICOLONS.search(unicodedata.name(letter, "")))
