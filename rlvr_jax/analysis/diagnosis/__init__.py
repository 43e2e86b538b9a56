"""The topics of a diagnosis: conclusions about policies, in sentences first.

Hands out `diagnose_run` (a run directory), `diagnose_answers` with its `Answers` (arrays of two
policies), and `write_page` and `as_json` for what they say.

`topics`: the form of a topic. `reach`: held-out problems. `uncertainty`: entropy and its exchange
  for reward. `practice`: training prompts and their outcomes. `writing`: the stored
  responses. `parameters`: the weights. `side_by_side`: answers of two policies, with a floor.
  `likelihood`: two policies on the same tokens; `token_changes`: which of them changed.
  `python -m rlvr_jax.diagnosis` puts them on a page, and draws the answers of two policy
  folders.
"""

from rlvr_jax.analysis.diagnosis.answers import Answers
from rlvr_jax.analysis.diagnosis.of_run import diagnose_run
from rlvr_jax.analysis.diagnosis.page import as_json, write_page
from rlvr_jax.analysis.diagnosis.pair import diagnose_answers

__all__ = ["Answers", "as_json", "diagnose_answers", "diagnose_run", "write_page"]
