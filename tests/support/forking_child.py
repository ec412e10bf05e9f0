"""A child with a child of its own, as a fit has when it fans out; writes the grandchild's pid to a file."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(sys.argv[1]).write_text(str(grandchild.pid))
    time.sleep(600)
