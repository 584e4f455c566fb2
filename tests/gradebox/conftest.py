"""The grader is a distribution of its own; the tests take it from its folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src/gradebox"))
