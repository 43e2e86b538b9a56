"""The documented name of `rlvr_jax.runs.diagnose`."""

import sys

from rlvr_jax.runs.diagnose import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
