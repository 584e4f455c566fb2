"""Captions: plain text with a little inline maths, turned into HTML that needs no maths library.

The same caption stands in the book, in JupyterLab and in Colab, and only one of them loads MathJax.
So ``$...$`` may hold what HTML itself can set: letters, numbers, sub- and superscripts, square
roots and the symbols below. Anything else is refused.
"""

import html
import re

SYMBOLS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "lambda": "λ",
    "mu": "μ",
    "pi": "π",
    "sigma": "σ",
    "tau": "τ",
    "theta": "θ",
    "approx": " ≈ ",
    "cdot": " · ",
    "dots": "…",
    "ge": " ≥ ",
    "in": " ∈ ",
    "infty": "∞",
    "le": " ≤ ",
    "ne": " ≠ ",
    "pm": " ± ",
    "propto": " ∝ ",
    "sum": "∑",
    "times": " × ",
    "to": " → ",
    "top": "⊤",
}
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[{}_^]|\s+|[^\\{}_^\s]")


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
        _math(part) if i % 2 else html.escape(part, quote=False) for i, part in enumerate(parts)
    )


def _math(source: str) -> str:
    tokens = _TOKEN.findall(source)
    out = []
    while tokens:
        out.append(_next(tokens, source))
    return f'<span style="white-space:nowrap">{"".join(out)}</span>'


def _next(tokens: list[str], source: str) -> str:
    """Take one item from the tokens: a symbol, a group in braces, a script or a root."""
    token = tokens.pop(0) if tokens else "}"
    if token == "{":
        out = []
        while tokens and tokens[0] != "}":
            out.append(_next(tokens, source))
        if not tokens:
            raise ValueError(f"caption holds maths with an open brace: ${source}$")
        tokens.pop(0)
        return "".join(out)
    if token in ("_", "^"):
        tag = "sub" if token == "_" else "sup"
        return f'<{tag} style="line-height:0">{_next(tokens, source)}</{tag}>'
    if token == "\\sqrt":
        return f'√<span style="border-top:1px solid">{_next(tokens, source)}</span>'
    if token in ("\\mathrm", "\\text"):
        return re.sub("</?i>", "", _next(tokens, source))
    if token[1:] in SYMBOLS:
        return SYMBOLS[token[1:]]
    if token.startswith("\\") or token == "}":
        raise ValueError(
            f"caption holds maths that HTML cannot set, {token!r} in ${source}$; "
            "use letters, sub- and superscripts, \\sqrt{...} or words"
        )
    if token.isalpha():
        return f"<i>{token}</i>"
    return "−" if token == "-" else html.escape(token)
