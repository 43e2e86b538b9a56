"""Cited chains: follow facts through numbered chunks, and cite the chunks that were used.

    prompt    <CHUNK_0>a=c<CHUNK_1>f=41<CHUNK_2>c=7<CHUNK_3>…;a?
    response  <useful_chunks>a=c<CHUNK_0>;c=7<CHUNK_2></useful_chunks><answer>7</answer>

Each chunk has one fact: a name is another name or a number. The answer is the number at the end of
a chain of two or three facts. `rlvr_jax.verifiers.texts.longrlvr` reads both blocks of a response.

The rubric has one statement for each fact of the chain. Its entities are the answer (E0) and the
names before it (E1, E2); the response names them by the facts in its block. A statement is
supported if a cited chunk has this fact. `rlvr_jax.verifiers.texts.carr_cgrpo` follows supported
statements from the answer.

The base model leaves out some citations and cites some other chunks, and some of its answers are
incorrect.
"""

from collections.abc import Sequence
from random import Random

from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.tasks.forms.words import BASE_MODEL, CHUNKS, LARGEST, NAMES
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.verifiers.answers import between
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.texts.carr_cgrpo import reached_fraction
from rlvr_jax.verifiers.texts.longrlvr import BLOCK, parse, precision_and_recall

__all__ = ["cited_chains", "response_text"]

HOPS = (2, 3)


@generated(response_tokens=24)
def cited_chains() -> Generated:
    """Chains of two and of three facts, in equal numbers.

    Metrics: precision, recall (of the cited chunks), format (1 if each block occurs once), evidence
      (reached fraction of the rubric).
    """
    return Generated(
        _prompt,
        HOPS,
        verify=_verify,
        base_model=BASE_MODEL,
        rewards=("precision", "recall", "format", "evidence"),
        answers=True,
    )


def _prompt(random: Random, hops: int) -> Prompt:
    names = random.sample(NAMES, len(NAMES))
    chain = names[:hops]
    value = str(random.randint(1, LARGEST))
    said = dict(zip(chain, [*chain[1:], value], strict=True))
    for name in names[hops:]:
        others = [other for other in NAMES if other != name]
        said[name] = random.choice([random.choice(others), str(random.randint(1, LARGEST))])
    order = random.sample(NAMES, len(NAMES))
    facts = [f"{name}={said[name]}" for name in order]
    reference = [order.index(name) for name in chain]
    text = "".join(chunk + fact for chunk, fact in zip(CHUNKS, facts, strict=True))
    return Prompt(
        f"{text};{chain[0]}?",
        answer={"value": value, "chain": chain, "reference": reference, "facts": facts},
        kind=f"{hops}_facts",
        gold=response_text([facts[chunk] for chunk in reference], [[c] for c in reference], value),
        meta={"level": hops - 1},
    )


def response_text(facts: Sequence[str], citations: Sequence[Sequence[int]], value: str) -> str:
    """A response: facts, the numbers of the chunks that are cited for each, and the answer."""
    parts = (
        fact + "".join(CHUNKS[chunk] for chunk in cited)
        for fact, cited in zip(facts, citations, strict=True)
    )
    return f"<{BLOCK}>{';'.join(parts)}</{BLOCK}><answer>{value}</answer>"


def _evidence(prompt: Prompt, text: str, cited: Sequence[int], answer: str) -> float:
    """The fraction of the rubric that is reached through facts of cited chunks."""
    facts, chain = prompt.answer["facts"], prompt.answer["chain"]
    block = between(text, f"<{BLOCK}>", f"</{BLOCK}>") or ""
    stated = dict(part.partition("<")[0].split("=", 1) for part in block.split(";") if "=" in part)
    shown = {facts[chunk] for chunk in cited if chunk < len(facts)}
    # From the name in the question to the answer: E2, E1, E0 for three facts.
    entities: dict[str, str | None] = {}
    rubrics, supported, name, before = [], [], chain[0], ()
    for place in reversed(range(len(chain))):
        entity = f"E{place}"
        found = stated.get(name or "") if place else answer
        entities[entity] = found
        rubrics.append([*before, entity])
        supported.append(f"{name}={found}" in shown)
        name, before = found, (entity,)
    return reached_fraction(rubrics, supported, entities)


@one_by_one
def _verify(prompt: Prompt, response: Response) -> Grade:
    cited, answer = parse(response.text)
    formed = cited is not None and answer is not None
    reference = prompt.answer["reference"]
    precision, recall = precision_and_recall(cited or [], reference)
    info = {
        "precision": precision,
        "recall": recall,
        "format": float(formed),
        "evidence": _evidence(prompt, response.text, cited, answer) if formed else 0.0,
    }
    right = formed and not response.truncated and answer == prompt.answer["value"]
    return Grade(float(right), info=info, answer=None if response.truncated else answer)
