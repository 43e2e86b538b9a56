"""The split of a batch of rollouts into updates, and of these into micro-batches."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BatchPlan:
    """The sizes of the updates of a step: rollouts, updates, micro-batches.

    Fields:
      prompts, samples: of a batch: groups, and rollouts of each.
      minibatches: updates per pass over the batch, of whole groups; they divide the prompts.
      epochs: passes over the batch.
      micro_batches: micro-batches of an update; they change only memory and
        time.
      critic_epochs: passes of the critic.
      prefix_trees: "auto", "always" or "never": as for `training.prefixes.Prefixes`.
    """

    prompts: int
    samples: int
    minibatches: int = 1
    epochs: int = 1
    micro_batches: int = 1
    critic_epochs: int = 1
    prefix_trees: str = "auto"

    @property
    def updates(self) -> int:
        """Optimizer updates per batch."""
        return self.minibatches * self.epochs

    @property
    def rows(self) -> int:
        """Rollouts of an update."""
        return self.prompts * self.samples // self.minibatches
