r"""Repairs: two short files, and a change of one value as an edit that replaces a line.

    prompt    a.py\nBa=3\nKo=7;b.py\nLi=9\nMu=1;Ko=12?
    response  <think>a.py</think><solution>
              ```python
              ### a.py
              <<<<<<< SEARCH
              Ko=7
              =======
              Ko=12
              >>>>>>> REPLACE
              ```
              </solution>

The question has the line after the change. `rlvr_jax.verifiers.programs.swe_rl` compares the change
of the files with the correct one; the outcome is their similarity. Nothing runs.

The base model often searches in the other file or for another value, so that no edit applies.
"""

from random import Random

from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.sketches.words import BASE_MODEL, NAMES
from rlvr_jax.verifiers.checks import Check

__all__ = ["edit_text", "repairs"]

FILES = ("a.py", "b.py")
LINES = 2
"""Lines of each file."""


@generated(response_tokens=24)
def repairs() -> Generated:
    """Changes of each file, in equal numbers.

    Metrics: malformed (1 for a change that cannot be applied), exact (1 if all files equal the
      oracle's).
    """
    return Generated(
        _prompt,
        FILES,
        verify=verifier(Check("rlvr_jax.verifiers.programs.swe_rl:check")),
        base_model=BASE_MODEL,
        rewards=("malformed", "exact"),
    )


def _prompt(random: Random, file: str) -> Prompt:
    names = random.sample(NAMES, LINES * len(FILES))
    values = dict(zip(names, random.sample(range(1, 50), len(names)), strict=True))
    lines = [f"{name}={value}" for name, value in values.items()]
    texts = {
        own: "\n".join(lines[LINES * k : LINES * (k + 1)]) + "\n" for k, own in enumerate(FILES)
    }
    old = random.choice(texts[file].splitlines())
    name, _, value = old.partition("=")
    new = f"{name}={random.choice([n for n in range(1, 50) if n != int(value)])}"
    shown = ";".join(f"{own}\n{text.rstrip()}" for own, text in texts.items())
    changed = texts[file].replace(f"{old}\n", f"{new}\n")
    return Prompt(
        f"{shown};{new}?",
        {"files": texts, "oracle": {file: changed}},
        file,
        edit_text(file, old, new),
    )


def edit_text(file: str, old: str, new: str) -> str:
    """A response that replaces a text of a file."""
    edit = f"\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n```\n"
    return f"<think>{file}</think><solution>\n```python\n### {file}{edit}</solution>"
