"""Evaluates every method and primitive on a folder of reference vectors.

    python tests/check_golden.py tests/golden

Cases are the folder's `inputs_<case>.npz`, and a method's vectors `<slug>_<case>.npz`. Prints a
line per method and a count; the exit code is 0 only if every array of every method was compared
and agrees to 1e-9 of its largest magnitude, in float64.
"""

import importlib
import json
import pkgutil
import sys
from pathlib import Path
from typing import NamedTuple

SUPPORT = Path(__file__).parent / "support"
if str(SUPPORT) not in sys.path:
    sys.path.insert(0, str(SUPPORT))

import adapters  # noqa: E402
import golden_vectors as golden  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402
from compiling import compile_in_haste  # noqa: E402

TOLERANCE = 1e-9

SLUGS = sorted(
    module.name for module in pkgutil.iter_modules(adapters.__path__) if module.name != "common"
)


class Comparison(NamedTuple):
    """One method on one case.

    Fields:
      differences: by array, largest difference relative to the array's largest magnitude.
      missing: arrays of the file that the adapter neither gives nor leaves out.
      left_out: arrays that the adapter leaves out, with the reason.
    """

    differences: dict[str, float]
    missing: list[str]
    left_out: dict[str, str]

    @property
    def agrees(self) -> bool:
        """Whether everything was compared and nothing differs."""
        return not self.missing and all(d <= TOLERANCE for d in self.differences.values())


def compare(slug: str, case: golden.Case) -> Comparison:
    """Evaluates one adapter on one case."""
    adapter = importlib.import_module(f"adapters.{slug}")
    found = adapter.outputs(case, golden.hyperparameters(slug, case.folder))
    wanted = golden.reference(slug, case)
    left_out = getattr(adapter, "LEFT_OUT", {})
    left_out = {name: why for name, why in left_out.items() if name in wanted}
    asked = [name for name in wanted if name not in left_out]
    differences = {name: difference(found[name], wanted[name]) for name in asked if name in found}
    return Comparison(differences, [name for name in asked if name not in found], left_out)


def difference(found, wanted) -> float:
    """Largest difference relative to the largest magnitude; inf where shapes or NaN differ."""
    found, wanted = np.asarray(found() if callable(found) else found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return float("inf")
    if not wanted.size:
        return 0.0
    found, wanted = found.astype(float), wanted.astype(float)
    if not np.array_equal(np.isfinite(found), np.isfinite(wanted)):
        return float("inf")
    same = found == wanted  # equal infinities
    if np.any(~np.isfinite(wanted) & ~same & ~(np.isnan(found) & np.isnan(wanted))):
        return float("inf")
    finite = np.isfinite(wanted)
    if not finite.any():
        return 0.0
    largest = float(np.abs(found[finite] - wanted[finite]).max())
    scale = float(np.abs(wanted[finite]).max())
    if scale == 0:
        return 0.0 if largest == 0 else float("inf")
    return largest / scale


def main(folder: Path) -> int:
    """Prints the comparison of a folder; returns the exit code."""
    cases = sorted(path.stem.removeprefix("inputs_") for path in folder.glob("inputs_*.npz"))
    if not cases:
        print(f"check_golden: {folder} must hold inputs_<case>.npz, found none", file=sys.stderr)
        return 2
    agree, arrays, failed = 0, 0, []
    for slug in SLUGS:
        present = [case for case in cases if (folder / f"{slug}_{case}.npz").is_file()]
        done = {case: compare(slug, golden.Case(folder, case)) for case in present}
        differences = [d for one in done.values() for d in one.differences.values()]
        missing = sorted({name for one in done.values() for name in one.missing})
        left_out = {name: why for one in done.values() for name, why in one.left_out.items()}
        arrays += len(differences)
        good = bool(present) and all(one.agrees for one in done.values())
        agree += good
        line = f"{slug}: {max(differences, default=float('nan')):.1e}, {len(differences)} arrays"
        line += f", cases {' '.join(present)}" if present else ", no vectors in this folder"
        if missing:
            line += f", not compared: {', '.join(missing)}"
        for case, one in done.items():
            bad = [name for name, d in one.differences.items() if not d <= TOLERANCE]
            line += f", differs in {case}: {', '.join(bad)}" if bad else ""
        line += "".join(f", left out {name} ({why})" for name, why in left_out.items())
        print(("ok   " if good else "FAIL ") + line, flush=True)
        if not good:
            failed.append(slug)
    others = sorted(
        {path.stem for path in folder.glob("*.json") if "slug" in json.loads(path.read_text())}
        - set(SLUGS)
    )
    print(
        f"{agree} of {len(SLUGS)} methods agree in {arrays} arrays;"
        f" {len(others)} other sets of vectors in the folder"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tests/check_golden.py DIR")
    jax.config.update("jax_enable_x64", True)
    compile_in_haste()
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    sys.exit(main(Path(sys.argv[1])))
