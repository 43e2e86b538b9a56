"""The model card of a trained policy: its description and its origin."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SHOWN = (
    "held_out_pass_at_1",
    "held_out_pass_at_8",
    "held_out_pass_at_32",
    "entropy",
    "held_out_truncated_fraction",
)


def policy_card(card: Mapping[str, Any], summary: Mapping[str, Any], paper: str) -> str:
    """The text of the model card, in Hugging Face's format, without time and path of the run.

    Args:
      card, summary: contents of the run's config.json and summary.json.
      paper: title of the method's paper, or a link.
    """
    settings = card["settings"]
    adapters = f", adapters of rank {settings['lora_rank']}" if settings["lora_rank"] else ""
    lines = [
        "---",
        "library_name: transformers",
        "pipeline_tag: text-generation",
        "tags:",
        "- reinforcement-learning",
        "- rlvr",
        f"- {card['method']}",
        "---",
        "",
        f"# {Path(card['model']).name}, trained by {card['method']} on {card['task']}",
        "",
        f"{paper}, by rlvr_jax {card['versions']['rlvr_jax']}: seed {card['seed']},"
        f" {summary['steps']} steps of {settings['prompts_per_step']} prompts ×"
        f" {settings['samples_per_prompt']} samples, {summary['sampled_tokens']:,} sampled"
        f" tokens{adapters}. Initial policy: `{Path(card['model']).name}`.",
        "",
        "| held-out | before | after |",
        "|---|---|---|",
    ]
    for name in _SHOWN:
        if f"{name}_end" in summary:
            before, after = (_number(summary.get(f"{name}_{at}")) for at in ("start", "end"))
            lines.append(f"| {_words(name)} | {before} | {after} |")
    lines += [
        "",
        f"{summary['n']} samples for each of {settings['evaluation_prompts']} prompts at most, at"
        f" temperature {settings['temperature']:g}. The numbers are of one seed.",
        "",
        "Terms of the loss:",
        "",
        *(f"- `{term}`" for term in card["loss_terms"]),
    ]
    if card["hyperparameters"]:
        given = ", ".join(f"`{n}={value}`" for n, value in card["hyperparameters"].items())
        lines += ["", f"Hyperparameters: {given}."]
    lines += [
        "",
        "```python",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        'model = AutoModelForCausalLM.from_pretrained("FOLDER")',
        'tokenizer = AutoTokenizer.from_pretrained("FOLDER")',
        "```",
        "",
        "The policy was trained on the prompts and the verifier of one task. Responses to other",
        "prompts were not tested. Its licence is the licence of the initial policy.",
    ]
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _words(name: str) -> str:
    return name.removeprefix("held_out_").replace("_at_", "@").replace("_", " ")
