"""Programs, one module each: `python -m experiments.NAME`.

On Linux a program starts anew once before other imports, so that the C library requests huge pages.
An update writes arrays of hundreds of megabytes, and their first touch, page by page, took up to a
quarter of its time (docs/speed.md). If GLIBC_TUNABLES is set, nothing is changed.
"""

import os
import sys
from pathlib import Path

_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_HUGE = "glibc.malloc.hugetlb=1"


def _use_huge_pages() -> None:
    # Python's own sign of `python -m`, while it looks for the module; who imports one does not see
    # his process replaced.
    started_by_name = sys.argv[:1] == ["-m"]
    if sys.platform != "linux" or not started_by_name or "GLIBC_TUNABLES" in os.environ:
        return
    # Under "always" they are given unasked, under "never" not at all.
    if _PAGES.is_file() and "[madvise]" in _PAGES.read_text():
        environment = os.environ | {"GLIBC_TUNABLES": _HUGE}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


_use_huge_pages()
