"""What the fit of a critic, or of a learned scorer in its place, changes."""

from dataclasses import dataclass
from typing import Any

import jax


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CriticState:
    """Parameters and optimizer state; the parameters are a head and, where there is one, a trunk,
    as of the policy."""

    params: dict[str, Any]
    optimizer_state: Any
