"""Colours of all plots, distinct with normal and with colour-blind vision.

Every colour has a contrast of at least 3:1 with its background. The first two colours of `COLOURS`
have it on light and on dark backgrounds: a picture of two lines needs no second version.
"""

COLOURS = (
    "#327afd",
    "#c76c02",
    "#00686b",
    "#7401cf",
    "#002b8d",
    "#a67cad",
    "#5b1b48",
    "#a90c00",
)
DARK_COLOURS = (
    "#667ae9",
    "#ff7f22",
    "#23e3ab",
    "#d493e7",
    "#eee24d",
    "#bbe8ff",
    "#89aa8a",
    "#c2516f",
)
"""The same lines on a dark background."""

NEUTRAL = "#8a8a8a"
"""Grey of a baseline or a reference line, for both backgrounds."""


def style_variables(colours: tuple[str, ...]) -> str:
    """Declarations of the CSS variables `--run-0`, `--run-1`, …, one per colour."""
    return " ".join(f"--run-{number}: {colour};" for number, colour in enumerate(colours))
