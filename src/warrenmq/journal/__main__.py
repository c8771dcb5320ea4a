"""`python -m warrenmq.journal FOLDER`: what a broker starts for itself, and nobody else."""

from __future__ import annotations

import sys
from pathlib import Path

from warrenmq.journal.process import main

main(Path(sys.argv[1]))
