"""Settings with which a command line starts: those of its task, then those of its method."""

from rlvr_jax import methods
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.tasks import preset_of


def preset(task: str, method: str) -> TrainConfig:
    """Returns the settings with which a command line for this task and method starts.

    Examples:
      >>> from rlvr_jax.runs import preset
      >>> config = preset("brackets", "clip_cov").replace(steps=60)
      >>> config.method, config.steps, config.preset
      ('clip_cov', 60, 'brackets/clip_cov')

    They are those of `TrainConfig`, changed by the preset of the task and then by the presets on
    the card of the method. Their `preset` is its name: "brackets/grpo" has settings for the task
    and others for the method. Flags change them, and `--no-preset` leaves both presets out.
    """
    known, of_task = preset_of(task)
    # An unknown name is refused later, with the other settings.
    known_method = ":" in method or method in methods.names()
    presets = methods.method(method).presets if known_method else {}
    of_method = {**presets.get("", {}), **presets.get(known, {})}
    name = "/".join([known] * bool(of_task) + [method] * bool(of_method))
    settings = {**of_task, **of_method, "preset": name}
    return TrainConfig.of(task=task, method=method, **settings)
