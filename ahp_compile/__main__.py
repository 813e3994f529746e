"""``python -m ahp_compile``."""

import sys

from ahp_compile.cli import main

sys.exit(main())
