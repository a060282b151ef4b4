"""Where a nightly run happens: each draws another folder, terminal, time zone, locale and home."""

import atexit
import os
import random
import shutil
import string
import tempfile
from pathlib import Path

LONGEST = 120  # characters of the temporary folder
TIME_ZONES = ("UTC", "America/St_Johns", "Asia/Kathmandu", "Pacific/Chatham")
LOCALES = ("C", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8")


def drawn_settings(draw: random.Random, temporary: str) -> dict[str, str]:
    """Variables of the environment; the temporary folder lies in the usual one."""
    length = draw.randint(1, LONGEST - len(temporary) - 1)
    settings = {
        "TMPDIR": f"{temporary}/{''.join(draw.choices(string.ascii_lowercase, k=length))}",
        "COLUMNS": str(draw.randint(40, 250)),
        "TZ": draw.choice(TIME_ZONES),
        "LC_ALL": draw.choice(LOCALES),
    }
    return settings | draw.choice([{}, {"HOME": "/nonexistent"}])


def draw_settings() -> None:
    """Draw settings for all workers, and print them as a shell takes them."""
    settings = drawn_settings(random.Random(), tempfile.gettempdir())
    print("drawn:", *(f"{name}={value}" for name, value in settings.items()), flush=True)
    folder = Path(settings["TMPDIR"])
    folder.mkdir(exist_ok=True)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ.update(settings)
    tempfile.tempdir = None  # it is found anew
