"""``python -m gradebox``."""

import sys

from gradebox.cli import main

sys.exit(main())
