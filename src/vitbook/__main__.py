"""``python -m vitbook``."""

import sys

from vitbook.command.cli import main

if __name__ == "__main__":
    sys.exit(main())
