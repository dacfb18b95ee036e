"""`python -m frazil` runs the command `frazil`."""

import sys

from frazil.cli import main

sys.exit(main())
