"""The code that a ``literalinclude`` shows."""

from types import SimpleNamespace
from typing import Any

from sphinx.directives.code import LiteralInclude, LiteralIncludeReader

from .myst import Directive


def included(directive: Directive) -> tuple[str, dict]:
    """The code, and the directive's options as Sphinx reads them.

    Raises:
        KeyError: Sphinx does not know an option.
        ValueError: The file does not hold the object.
        OSError: The file is missing.
    """
    path = (directive.path.parent / directive.argument).resolve()
    spec: Any = LiteralInclude.option_spec
    options = {key: spec[key](value or None) for key, value in directive.options.items()}
    config: Any = SimpleNamespace(source_encoding="utf-8")
    code, _ = LiteralIncludeReader(str(path), options, config).read()
    return code, options
