"""`python -m warrenmq.journal FOLDER`: what a broker starts for itself, and nobody else."""

from __future__ import annotations

import sys
from pathlib import Path

from warrenmq.journal.process import main
from warrenmq.journal.without_pandas import leave_pandas_out

leave_pandas_out()
main(Path(sys.argv[1]))
