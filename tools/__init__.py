"""What the Makefile calls: one module for each command, and the parts that several share."""

import sys
from pathlib import Path

# The directives say what they are in notebooks, too: `syntax` lies with Sphinx's extensions.
sys.path.append(str(Path(__file__).resolve().parents[1] / "book" / "_ext"))
