"""A server for clients of the Tinker protocol (tinker 0.38.0): training and sampling over HTTP.

    service = Service(folder, {"brackets": Base("brackets", model, params, tokenizer)}, Limits())
    service.start()
    Server(("127.0.0.1", 8471), service, tokens, largest=2**25).serve_forever()

- `http` and `actions` are the protocol, `wire` its protocol buffers. `service` has sessions and the
  order of requests, `training_run` a model with its log.
- `learner` adds gradients and makes steps. `losses` has the protocol's losses, `published` those of
  `rlvr_jax.methods`, and `sampling` the responses.
"""

from rlvr_jax.server.gradients import AdamParams
from rlvr_jax.server.http import Server
from rlvr_jax.server.learner import Learner
from rlvr_jax.server.models import Base, Spec
from rlvr_jax.server.refusal import Refused
from rlvr_jax.server.service import Limits, Service

__all__ = ["AdamParams", "Base", "Learner", "Limits", "Refused", "Server", "Service", "Spec"]
