"""``python -m glassformer`` is ``glassformer``."""

import sys

from glassformer.tools.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
