"""Captions: plain text; between dollar signs, letters in italics with sub- and superscripts.

The same caption stands in the book, in JupyterLab and in Colab, and each sets formulas in its own
way, or not at all. So maths is written as HTML can show it: ``$W_Q$``, ``$e^{-α}$``, and signs as
they are (√, ×, α).
"""

import html
import re

_PIECE = re.compile(r"([_^])(?:\{([^\\{}_^]+)\}|([^\\{}_^\s]))|([A-Za-z])|(.)", re.DOTALL)


def caption_html(text: str) -> str:
    """Escape plain text and set what stands between dollar signs.

    Args:
        text: Plain text; ``$...$`` holds simple maths.

    Raises:
        ValueError: A dollar sign has no partner, or the maths is not simple enough.
    """
    parts = text.split("$")
    if len(parts) % 2 == 0:
        raise ValueError(f"caption has a dollar sign without a partner: {text!r}")
    return "".join(
        _maths(part) if i % 2 else html.escape(part, quote=False) for i, part in enumerate(parts)
    )


def _maths(source: str) -> str:
    def piece(match: re.Match[str]) -> str:
        script, group, one, letter, sign = match.groups()
        if script:
            tag = "sub" if script == "_" else "sup"
            return f'<{tag} style="line-height:0">{_PIECE.sub(piece, group or one)}</{tag}>'
        if letter:
            return f"<i>{letter}</i>"
        if sign in "\\{}_^":
            raise ValueError(
                f"caption holds maths that HTML cannot set, {sign!r} in ${source}$; use letters, "
                "signs (√, ×, α) and sub- and superscripts, x_i or x^{2d}"
            )
        return "−" if sign == "-" else html.escape(sign)

    return f'<span style="white-space:nowrap">{_PIECE.sub(piece, source)}</span>'
