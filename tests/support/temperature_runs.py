"""Runs and steps of draws whose temperature moves while a response is written."""

from dataclasses import replace

import jax
import training_runs

from rlvr_jax.experience import StepContext, experience
from rlvr_jax.experience.laws import numpy_actor


def run_of(model, method, *hyperparameters):
    config = training_runs.settings(model, "unused", method=method)
    return training_runs.prepared(replace(config, hyperparameters=hyperparameters))


def turn(step):
    own = numpy_actor.setting(experience())
    return StepContext(step, jax.random.key(step), own, lambda count: [])
