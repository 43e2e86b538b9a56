"""Other engines in place of the sampler in this process: vLLM, and a probe of their log-probs."""

from rlvr_jax.rollout.engines.engine import Decoding, Engine, EngineError, Generated
from rlvr_jax.rollout.engines.started import started
from rlvr_jax.rollout.engines.vllm import VllmServer

__all__ = ["Decoding", "Engine", "EngineError", "Generated", "VllmServer", "started"]
