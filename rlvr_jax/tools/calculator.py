"""Exact arithmetic as a tool."""

from rlvr_jax.tools.base import Tool, ToolError
from rlvr_jax.verifiers.exact import DECIMALS, evaluate, plain_signs, tokens

_LONGEST = 1000


def calculator(name: str = "calculator") -> Tool:
    """Evaluates + - * / ^ and brackets exactly: a whole number, or a fraction in lowest terms."""

    def run(arguments, state):
        text = str(arguments["expression"])
        if len(text) > _LONGEST:
            raise ToolError(f"an expression must have at most {_LONGEST} characters")
        words = tokens(plain_signs(text).strip().removesuffix("="), DECIMALS)
        value = evaluate(words, signs=True) if words else None
        if value is None:
            raise ToolError("this is no expression with a value")
        return state, str(value)

    schema = {"expression": {"type": "string"}}
    return Tool(name, "Evaluates an arithmetic expression exactly.", schema, run, seconds=5.0)
