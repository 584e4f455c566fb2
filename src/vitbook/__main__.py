"""``python -m vitbook``."""

import sys

if __name__ == "__main__":
    try:
        from vitbook.command.cli import main  # takes seconds, in which one may think better of it
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(main())
