"""The documented name of `rlvr_jax.diagnosis.diagnose`."""

import sys

from rlvr_jax.diagnosis.diagnose import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
