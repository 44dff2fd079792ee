"""``python -m keyhole`` is ``keyhole``."""

import sys

from keyhole.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
