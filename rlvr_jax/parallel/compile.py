"""The documented name of `rlvr_jax.pods.compile`."""

import sys

from rlvr_jax.pods.compile import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
