"""The console of a command: descriptions for `--help`, progress, and further receivers of the
metrics of a run."""

from rlvr_jax.console.help import described
from rlvr_jax.console.progress import RunProgress, print_settings, progress_bar
from rlvr_jax.console.trackers import Tracker, check_trackers, make_trackers

__all__ = [
    "RunProgress",
    "Tracker",
    "check_trackers",
    "described",
    "make_trackers",
    "print_settings",
    "progress_bar",
]
