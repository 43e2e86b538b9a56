"""A model in training: gradients that add up until the optimizer step, and the step."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from rlvr_jax.keys import named_key
from rlvr_jax.objectives import Objective
from rlvr_jax.policy import Params
from rlvr_jax.server import published
from rlvr_jax.server.datums import check_datum, micro_batches, padded_size
from rlvr_jax.server.gradients import (
    AdamParams,
    adamw,
    added,
    gradient_of,
    loss_of,
    statistics,
)
from rlvr_jax.server.losses import protocol_loss
from rlvr_jax.server.models import Base, Spec, first_weights, whole_params
from rlvr_jax.server.refusal import Refused
from rlvr_jax.server.storage import named_arrays, tree_of
from rlvr_jax.server.wire import Datum, ForwardBackward
from rlvr_jax.training.metrics import token_metrics


class Outputs(NamedTuple):
    """Result of a forward pass: metrics of the request, and arrays [N] of each datum by name."""

    metrics: dict[str, float]
    arrays: dict[str, list[np.ndarray]]


class Learner:
    """A model in training.

    Fields:
      base, spec: base model, adapters and seed.
      model: the base with the adapters of `spec`.
      trained: adapters, or all weights.
      steps: optimizer steps so far.
    """

    def __init__(self, base: Base, spec: Spec, rows: int):
        self.base, self.spec, self._rows = base, spec, rows
        self.model, self.trained = first_weights(base, spec)
        self._moments: Any = optax.scale_by_adam().init(self.trained)
        self._states: dict[str, np.ndarray] = {}
        self.drop_gradient()
        self.steps: int = 0

    def drop_gradient(self) -> None:
        """Drops the gradient that waits for a step."""
        self._gradient: Any = None
        self._counted: list[tuple[np.ndarray, ...]] = []
        self._loss = 0.0
        self._waiting: dict[tuple, list[Datum]] = {}

    @property
    def pending(self) -> bool:
        """Whether a gradient waits for the optimizer step."""
        return self._gradient is not None or bool(self._waiting)

    @property
    def params(self) -> Params:
        """Weights that sample: the base with adapters, or all trained weights."""
        return whole_params(self.base.params, self.trained, self.spec.rank > 0)

    def forward_backward(self, request: ForwardBackward) -> Outputs:
        """Log-probs and entropies of the targets; unless `forward_only`, also a gradient.

        The gradient of a protocol loss is added here. The datums of a published objective wait for
        the step, as its gradient depends on all of them.

        Raises:
          Refused: an unknown loss, or datums that do not fit it. Nothing changes then.
        """
        if not request.data:
            raise Refused("forward_backward: data must have at least one datum, got none")
        if request.loss.startswith(published.PREFIX):
            return self._published(request)
        loss = protocol_loss(request.loss)
        numbers = loss.numbers(request.loss, request.config)
        for place, datum in enumerate(request.data):
            check_datum(place, datum, self.model.config, loss.inputs)
        total, gradient = 0.0, self._gradient
        stats: list[Any] = [None] * len(request.data)
        for own, batch in micro_batches(request.data, loss.inputs, self._rows):
            fixed = self.model, self.base.params, self.trained, batch
            how = {"loss": request.loss, "adapted": self.spec.rank > 0}
            if request.forward_only:
                value, found = loss_of(*fixed, numbers, **how)
            else:
                value, found, new = gradient_of(*fixed, numbers, **how)
                gradient = new if gradient is None else added(gradient, new)
            total += float(value)
            _collect(stats, own, found)
        metrics = {"loss:sum": total, "tokens:sum": float(sum(map(_length, request.data)))}
        if not request.forward_only:
            self._gradient = gradient
            self._loss += total
            for datum, own in zip(request.data, stats, strict=True):
                self._count(datum, own, _counts(datum, loss.inputs))
        return Outputs(metrics, _arrays(request.data, stats))

    def _published(self, request: ForwardBackward) -> Outputs:
        objective = published.published_objective(request.loss, request.config)
        for place, datum in enumerate(request.data):
            published.check_published(place, datum, self.model.config)
        key = request.loss, tuple(sorted(request.config.items()))
        whole = [*self._waiting.get(key, ()), *request.data]
        published.check_equal_inputs(whole)
        published.check_measured(objective, whole)
        stats: list[Any] = [None] * len(request.data)
        for own, batch in micro_batches(request.data, (), self._rows):
            fixed = self.model, self.base.params, self.trained, batch
            _collect(stats, own, statistics(*fixed, adapted=self.spec.rank > 0))
        if not request.forward_only:
            self._waiting[key] = whole
        metrics = {"tokens:sum": float(sum(map(_length, request.data)))}
        return Outputs(metrics, _arrays(request.data, stats))

    def _count(self, datum: Datum, stats: tuple[np.ndarray, ...], counted: np.ndarray) -> None:
        advantage = datum.inputs.get("advantages", np.zeros(len(counted), np.float32))
        logp, entropy = (one[: len(counted)][counted] for one in stats)
        self._counted.append((logp, entropy, advantage[counted]))

    def gradient(self) -> tuple[Any, dict[str, float], dict[str, np.ndarray]]:
        """The gradient of all losses since the last step, and metrics over all their tokens.

        Metrics: loss (sum of the losses); of protocol losses entropy (nats per counted token) and
        covariance (of advantage and log-prob over them). Those of a published objective have its
        name before a slash if there are several losses.

        Returns:
          The gradient, the metrics and the new states of objectives by name.
        Raises:
          Refused: there is no gradient.
        """
        if not self.pending:
            raise Refused("optim_step: a forward_backward must come before it, got none")
        gradient = self._gradient
        metrics: dict[str, float] = {}
        states: dict[str, np.ndarray] = {}
        several = len(self._waiting) + (gradient is not None) > 1
        if gradient is not None:
            metrics = {"loss": self._loss, **_token_metrics(self._counted)}
        for (loss, config), data in self._waiting.items():
            objective = published.published_objective(loss, dict(config))
            found, rollouts = self._exact(loss, objective, data)
            gradient = found.grads if gradient is None else added(gradient, found.grads)
            states |= named_arrays(f"objectives/{loss}", found.method_state)
            own = {**token_metrics(found.stats, rollouts), **found.metrics, "loss": found.loss}
            head = f"{loss}/" if several else ""
            metrics |= {f"{head}{name}": float(value) for name, value in own.items()}
        return gradient, metrics, states

    def _exact(self, loss: str, objective: Objective, data: Sequence[Datum]) -> Any:
        number = padded_size(-(-len(data) // self._rows))
        rollouts = published.rollouts_of(data, number * self._rows)
        state, head = published.first_state(objective, rollouts), f"objectives/{loss}"
        if any(name.startswith(head) for name in self._states):
            # A state of the number of rows or tokens is refused if that changes.
            state = tree_of(head, self._states, state)
        found = published.published_gradient(
            self.model,
            objective,
            self.trained,
            rollouts,
            state,
            named_key(self.spec.seed, "objective", self.steps),
            base=self.base.params,
            micro_batches=number,
            adapted=self.spec.rank > 0,
        )
        return found, rollouts

    def optim_step(self, adam: AdamParams) -> dict[str, float]:
        """Makes one AdamW step with the gradient since the last one, and drops that.

        Returns:
          The metrics of `gradient`, gradient_norm (before the clip) and step.
        Raises:
          Refused: no gradient, or one that is not finite. Weights and optimizer do not change.
        """
        try:
            gradient, metrics, states = self.gradient()
            numbers = {name: jnp.float32(value) for name, value in vars(adam).items()}
            trained, moments, norm = adamw(self.trained, gradient, self._moments, numbers)
            if not np.isfinite(norm):
                raise Refused(
                    f"optim_step: the gradient must be finite, got a norm of {float(norm)} with a"
                    f" loss of {metrics.get('loss')}; it is dropped and the weights are unchanged"
                )
        finally:
            self.drop_gradient()
        self.trained, self._moments = trained, moments
        self._states |= states
        self.steps += 1
        return {**metrics, "gradient_norm": float(norm), "step": float(self.steps)}

    def weights(self) -> dict[str, np.ndarray]:
        """The trained weights by name."""
        return named_arrays("trained", self.trained)

    def state(self) -> dict[str, np.ndarray]:
        """The arrays that a step changes, by name: weights, states of optimizer and objectives."""
        return {
            **self.weights(),
            **named_arrays("adam", self._moments),
            **self._states,
            "steps": np.array(self.steps),
        }

    def restore(self, arrays: Mapping[str, np.ndarray], optimizer: bool = True) -> None:
        """Takes the weights of `state`, and the optimizer and the rest if they are wanted.

        A gradient that waits for a step is dropped.

        Raises:
          Refused: arrays of a model of another shape.
        """
        trained = tree_of("trained", arrays, self.trained)
        if optimizer:
            self._moments = tree_of("adam", arrays, self._moments)
            self._states = {
                name: array for name, array in arrays.items() if name.startswith("objectives/")
            }
            self.steps = int(arrays["steps"])
        else:
            self._moments = optax.scale_by_adam().init(trained)
            self._states, self.steps = {}, 0
        self.trained = trained
        self.drop_gradient()


def _collect(stats: list[Any], own: np.ndarray, found: Sequence[Float[Array, "B N"]]) -> None:
    rows = [np.asarray(one) for one in found]
    for row, number in enumerate(own):
        stats[number] = tuple(one[row] for one in rows)


def _length(datum: Datum) -> int:
    return len(datum.tokens)


def _arrays(data: Sequence[Datum], stats: Sequence[Any]) -> dict[str, list[np.ndarray]]:
    names = "logprobs", "entropy"
    return {
        name: [one[place][: _length(datum)] for datum, one in zip(data, stats, strict=True)]
        for place, name in enumerate(names)
    }


def _counts(datum: Datum, names: Sequence[str]) -> np.ndarray:
    """The tokens that a protocol loss counts: those with a weight, a log-prob or an advantage."""
    return np.any([datum.inputs[name] != 0 for name in names], axis=0)


def _token_metrics(counted: Sequence[tuple[np.ndarray, ...]]) -> dict[str, float]:
    logp, entropy, advantage = (np.concatenate(part) for part in zip(*counted, strict=True))
    if not logp.size:
        return {}
    deviation = (logp - logp.mean()) * (advantage - advantage.mean())
    metrics = {"entropy": float(entropy.mean())}
    return metrics | ({"covariance": float(deviation.mean())} if advantage.any() else {})
