"""What "cut the arrow" reads: the recorded model of the matching pairs."""

from __future__ import annotations

from tools.live.pack import model


def data() -> dict:
    """The model; images and glyphs come with the figure."""
    from vitbook.book.records import load_record

    record = load_record("matching_pairs")
    return {"model": model(record.settings["model"], record.weights("attention"))}
