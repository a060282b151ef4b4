"""The command ``glassformer`` as a rank with small waits: ``impatient.py DIRECTORY train …``.

Its process id lies in DIRECTORY, under the number of the rank.
"""

import os
import sys
from datetime import timedelta
from pathlib import Path

from glassformer.cli.main import main
from glassformer.training.parallel import pulse, ranks

if __name__ == "__main__":
    Path(sys.argv[1], os.environ["RANK"]).write_text(str(os.getpid()))
    pulse._SECONDS = 0.2
    pulse.Pulse.__init__.__kwdefaults__["patience"] = 5.0
    ranks._WAIT_OF_RANK_0 = timedelta(seconds=15)
    sys.exit(main(sys.argv[2:]))
