"""The topics of a diagnosis: conclusions about policies, in sentences first.

`diagnose_run` takes a run directory, `diagnose_answers` takes the `Answers` of two policies.
`write_page` and `as_json` take their topics. `python -m rlvr_jax.diagnosis` calls them.

- `topics`: the form of a topic. `reach`: held-out problems. `uncertainty`: entropy and reward.
- `practice`: training prompts and their outcomes. `writing`: the stored responses.
- `parameters`: the weights. `side_by_side`: responses of two policies, with a noise floor.
- `likelihood`: two policies on the same tokens. `token_changes`: the tokens that changed.
"""

from rlvr_jax.analysis.diagnosis.answers import Answers
from rlvr_jax.analysis.diagnosis.of_run import diagnose_run
from rlvr_jax.analysis.diagnosis.page import as_json, write_page
from rlvr_jax.analysis.diagnosis.pair import diagnose_answers

__all__ = ["Answers", "as_json", "diagnose_answers", "diagnose_run", "write_page"]
