"""Jobs of a pool, and the processes that they leave."""

WALL = 0.3  # seconds of a job that is to be given up
PATIENT = 60.0  # and of one that is not, however busy the machine is


def python(*lines: str) -> str:
    """An expression that executes statements."""
    return f"exec({chr(10).join(lines)!r}, {{}})"
