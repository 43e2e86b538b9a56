"""Colours of plots: contrast with the background, distances for colour-blind readers."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from rlvr_jax.analysis.colours import COLOURS, DARK_COLOURS, NEUTRAL

ROOT = Path(__file__).parents[2]
LIGHT_PAPERS = ("#ffffff", "#fbfaf8")
DARK_PAPERS = ("#15181c", "#1b1f24", "#1e2129")  # of reports, of their cards, of the site
CONTRAST = 3.0  # least of WCAG 2.2, 1.4.11, for graphical objects
TEXT_CONTRAST = 4.5  # least of 1.4.3, for text
DISTANCE = 0.1  # in Oklab, in which a distance of 0.02 is just visible
# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
VISION = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.1523, 1.0526, -0.2049), (0.1145, 0.7863, 0.0992), (-0.0039, -0.0481, 1.052)),
    "deuteranopia": ((0.3673, 0.8606, -0.228), (0.2801, 0.6725, 0.0474), (-0.0118, 0.0429, 0.9689)),
    "tritanopia": ((1.2555, -0.0767, -0.1788), (-0.0784, 0.9308, 0.1476), (0.0047, 0.6914, 0.3039)),
}
# Oklab: from linear RGB to cones, and from their cube roots to the space.
TO_CONES = ((0.4122, 0.5363, 0.0514), (0.2119, 0.6807, 0.1074), (0.0883, 0.2817, 0.63))
TO_LAB = ((0.2105, 0.7936, -0.0041), (1.978, -2.4286, 0.4506), (0.0259, 0.7828, -0.8087))


def linear(colour):
    values = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(first, second):
    low, high = sorted(linear(each) @ [0.2126, 0.7152, 0.0722] for each in (first, second))
    return (high + 0.05) / (low + 0.05)


def oklab(colour, vision):
    seen = np.clip(np.array(VISION[vision]) @ linear(colour), 0, 1)
    return np.array(TO_LAB) @ np.cbrt(np.array(TO_CONES) @ seen)


@pytest.mark.parametrize(
    ("colours", "papers"),
    [
        (COLOURS, LIGHT_PAPERS),
        (DARK_COLOURS, DARK_PAPERS),
        ((*COLOURS[:2], NEUTRAL), LIGHT_PAPERS + DARK_PAPERS),
    ],
    ids=["light", "dark", "both"],
)
def test_every_colour_stands_out_from_its_background(colours, papers):
    found = {pair: contrast(*pair) for pair in itertools.product(colours, papers)}
    assert min(found.values()) >= CONTRAST, found


def test_notes_of_reports_can_be_read():
    css = (ROOT / "rlvr_jax/analysis/page.css").read_text()
    light, dark = (dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in css.split("@media")[:2])
    for theme, ink, paper in itertools.product((light, dark), ("soft", "faint"), ("paper", "card")):
        assert contrast(theme[ink], theme[paper]) >= TEXT_CONTRAST, (ink, paper)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("colours", [COLOURS, DARK_COLOURS], ids=["light", "dark"])
def test_no_two_colours_look_alike(colours, vision):
    found = {
        pair: np.linalg.norm(oklab(pair[0], vision) - oklab(pair[1], vision))
        for pair in itertools.combinations(colours, 2)
    }
    assert len(colours) == 8 and min(found.values()) >= DISTANCE, found


def test_plots_take_their_colours_from_one_module():
    folders = ("notebooks", "docs", "experiments", "rlvr_jax/analysis")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    named = re.compile(r"""["']#[0-9a-f]{6}["']|["'](?:tab:\w+|C\d)["']""", re.IGNORECASE)
    with_own = {str(path.relative_to(ROOT)) for path in files if named.search(path.read_text())}
    assert with_own == {"rlvr_jax/analysis/colours.py"}


@pytest.mark.parametrize("path", sorted((ROOT / "docs/images").glob("entropy_*s*.svg")))
def test_sketches_of_curves_have_these_colours(path):
    curves = re.findall(r'stroke="(#\w+)" stroke-width="2"', path.read_text())
    assert set(curves) <= set(COLOURS)
