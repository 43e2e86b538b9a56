"""VerlTool: GRPO on responses that call tools, without the tools' replies in the loss."""

import pytest

from rlvr_jax.methods import recipe


def test_what_a_method_is_made_of_is_named():
    label = recipe("verltool", style="fenced").experience.draw[1].label
    assert "toolbox(python" in label and "```python" in label
    with pytest.raises(ValueError, match="tools: style must be one of json, tags, fenced"):
        recipe("verltool", style="yaml")
    with pytest.raises(ValueError, match="a tool must be one of calculator, python, search:PATH"):
        recipe("verltool", tools=("hammer",))
