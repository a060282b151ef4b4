"""The command ``glassformer`` as a rank with a short timeout: ``impatient.py DIRECTORY train …``.

Its process id lies in DIRECTORY, under the number of the rank.
"""

import os
import sys
from datetime import timedelta
from pathlib import Path

from glassformer.tools.cli.main import main
from glassformer.training.parallel import ranks

if __name__ == "__main__":
    Path(sys.argv[1], os.environ["RANK"]).write_text(str(os.getpid()))
    ranks._TIMEOUT = timedelta(seconds=15)
    sys.exit(main(sys.argv[2:]))
