"""Packages are named one by one: discovery would miss `rlvr_jax/kernels`, a link to `kernels/`."""

from pathlib import Path

from setuptools import setup

ROOMS = [
    "analysis",
    "experience",
    "experience.curricula",
    "experience.draws",
    "experience.stages",
    "kernels",
    "methods",
    "objectives",
    "objectives.advantages",
    "objectives.algebra",
    "objectives.regularizers",
    "objectives.statistics",
    "objectives.surrogates",
    "objectives.transforms",
    "parallel",
    "policy",
    "rollout",
    "runs",
    "tasks",
    "training",
    "verifiers",
    "verifiers.formulas",
]

setup(
    name="rlvr_jax",
    version="0.1.0",
    description="Reinforcement learning with verifiable rewards and token entropy, in JAX",
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=["rlvr_jax", *(f"rlvr_jax.{room}" for room in ROOMS)],
    package_data={
        "rlvr_jax.analysis": ["*.html", "*.css", "*.js"],
        "rlvr_jax.tasks": ["base_models/*/*"],
    },
    install_requires=[
        "jax>=0.10",
        "flax>=0.12",
        "optax>=0.2.5",
        "orbax-checkpoint>=0.11",
        "chex>=0.1.90",
        "jaxtyping>=0.3",
        "numpy>=2.0",
        "scipy>=1.12",
        "safetensors>=0.5",
        "tokenizers>=0.21",
        "transformers>=5.0",
        "tyro>=0.9",
        "rich>=13",
        "matplotlib>=3.9",
        "tensorboardX>=2.6",
        "jinja2>=3.1",
        "sympy>=1.12",
    ],
    extras_require={
        "test": [
            "pytest>=8",
            "pytest-xdist>=3.6",
            "beartype>=0.20",
            "ruff>=0.8",
            "reasoning-gym>=0.1.25",
            "tensorflow-datasets>=4.9.10",
            "importlib_resources>=6",
            "nbclient>=0.10",
            "ipykernel>=6",
        ],
        "tasks": [
            "reasoning-gym>=0.1.25",
            "tensorflow-datasets>=4.9.10",
            "importlib_resources>=6",
        ],
        "gguf": ["gguf>=0.19"],
        # One version: the yardstick of tests. Without accelerate transformers reads no GGUF file.
        "parity": ["torch==2.13.0", "accelerate>=1.10"],
        "tpu": ["jax[tpu]>=0.10"],
        "cuda": ["jax[cuda13]>=0.10"],
        "notebooks": ["jupyterlab>=4", "jupytext>=1.16"],
    },
)
