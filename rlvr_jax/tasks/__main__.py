"""Shows tasks: their prompts, verifier, what they need, and how known answers are graded.

python -m rlvr_jax.tasks                       all that are built in
python -m rlvr_jax.tasks brackets jsonl:FILE   those that are named
"""

import sys
from collections.abc import Sequence

from rlvr_jax.tasks import load, module_of, names
from rlvr_jax.tasks.catalogue import entry


def main(arguments: Sequence[str]) -> None:
    """Prints an entry for each task, as they are made."""
    if {"-h", "--help"} & {*arguments}:
        print(__doc__)
        return
    for name in arguments or names():
        print(entry(name, load, module_of(name)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
