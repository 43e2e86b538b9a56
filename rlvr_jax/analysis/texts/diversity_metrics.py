"""Diversity of the rollouts of a prompt: texts, embeddings, answers.

    distinct-n      different n-grams / all n-grams, pooled over the rollouts of a prompt
    self-BLEU       mean BLEU of a rollout against the others: high means alike
    Vendi score     exp of the entropy of the eigenvalues λ of S / N (S similarities): the effective
                    number of different rollouts; of order q: exp(ln Σ λ^q / (1 - q))
    set distance    mean Jaccard distance of sets (of bigrams, equations, called tools)
    answers         different ones, entropy of their histogram, Simpson's 1 - Σ f²
    correct ones      different texts among correct rollouts, which pass@k should preserve

distinct-n falls with length: compare it at equal numbers of tokens. Mean hidden states of all texts
have cosines near 1: centre them before you compute a Vendi score.

Source of the Vendi score: Friedman & Dieng 2022, https://arxiv.org/abs/2210.02410. Implementations
of self-BLEU differ. Ours has the orders that the text has, with uniform weights. Above order 1 a
precision is (hits + 1) / (total + 1). The brevity penalty uses the closest reference length, the
shorter one on ties.
"""

import itertools
import math
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rlvr_jax.analysis.arrays import histogram_entropy

_Text = Sequence[Hashable]


def distinct(texts: Sequence[_Text], n: int) -> float:
    """Number of different n-grams divided by the number of all n-grams of the texts; 0 without
    any."""
    grams = [gram for text in texts for gram in _grams(text, n)]
    return len(set(grams)) / len(grams) if grams else 0.0


def self_bleu(texts: Sequence[_Text], max_n: int = 4) -> float:
    """Mean BLEU of each text with all others as references, in [0, 1]; 0 for a single text."""
    if len(texts) < 2:
        return 0.0
    counts = [[Counter(_grams(text, n)) for text in texts] for n in range(1, max_n + 1)]
    return float(np.mean([_bleu(texts, counts, row) for row in range(len(texts))]))


def cosine_similarity(embeddings: ArrayLike) -> np.ndarray:
    """Cosines between rows, [N, N] of [N, D]; a row of zeros has cosine 0 to all others."""
    rows = np.asarray(embeddings, float)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(length > 0, length, 1.0)
    return unit @ unit.T


def gram_similarity(texts: Sequence[_Text]) -> np.ndarray:
    """Cosines between the bigram counts of texts, [N, N], for `vendi`; 1 for equal texts.

    A text with one token has its unigram, and an empty text has one empty gram.
    """
    counts = [Counter(_grams(text, 2) or _grams(text, 1) or [()]) for text in texts]
    place = {gram: i for i, gram in enumerate(dict.fromkeys(g for each in counts for g in each))}
    table = np.zeros((len(texts), len(place)))
    for row, each in enumerate(counts):
        table[row, [place[gram] for gram in each]] = list(each.values())
    return cosine_similarity(table)


def mean_distance(similarity: ArrayLike) -> float:
    """Mean of 1 - similarity over pairs of different rows; 0 for a single one."""
    similarity = np.asarray(similarity, float)
    above = np.triu_indices(len(similarity), 1)
    return float(np.mean(1 - similarity[above])) if len(similarity) > 1 else 0.0


def vendi(similarity: ArrayLike, q: float = 1.0) -> float:
    """The effective number of different rows, between 1 and N.

    Args:
      similarity: [N, N], symmetric, positive semi-definite, 1 on the diagonal.
      q: order, > 0. 1 is Shannon's entropy; a larger order has more weight on frequent rows.
    """
    similarity = np.asarray(similarity, float)
    if not q > 0:
        raise ValueError(f"vendi: q must be above 0, got {q}")
    if not np.allclose(np.diag(similarity), 1):
        raise ValueError(
            f"vendi: similarity must have 1 on its diagonal, got {similarity.diagonal()}"
        )
    # Rounding makes zeros slightly negative.
    values = np.maximum(np.linalg.eigvalsh(similarity / len(similarity)), 0.0)
    if q == 1:
        return float(np.exp(np.sum(special.entr(values))))
    return float(np.exp(np.log(np.sum(values[values > 0] ** q)) / (1 - q)))


def bigrams(text: _Text) -> set[tuple[Hashable, ...]]:
    """The different bigrams of a text, or the unigrams of a text with fewer than two tokens."""
    return set(_grams(text, 2) or _grams(text, 1))


def jaccard_distance(sets: Sequence[Collection[Hashable]]) -> float:
    """Mean of 1 - |A ∩ B| / |A ∪ B| over pairs. Two empty sets are equal; 0 for a single set."""
    pairs = [(set(a), set(b)) for a, b in itertools.combinations(sets, 2)]
    return float(np.mean([1 - len(a & b) / len(a | b) if a | b else 0.0 for a, b in pairs] or [0]))


class AnswerDiversity(NamedTuple):
    """The parsed answers of one prompt.

    Fields:
      number: number of different answers. entropy: entropy of their histogram, nats. simpson: 1 - Σ
        f², the probability that two random answers differ. All are 0 without parsed answers.
    """

    number: int
    entropy: float
    simpson: float


def answer_diversity(answers: Sequence[Hashable], unparsed: Hashable = None) -> AnswerDiversity:
    """Counts the answers of one prompt, without those that equal `unparsed`."""
    counts = Counter(answer for answer in answers if answer != unparsed)
    fractions = np.array(list(counts.values()), float) / max(counts.total(), 1)
    simpson = 1 - np.sum(fractions**2) if counts else 0.0
    return AnswerDiversity(len(counts), histogram_entropy(list(counts.values())), float(simpson))


def different_beginnings(texts: Sequence[_Text], length: int = 3) -> int:
    """Number of different first tokens of texts: a crude count of ways to solve a problem.

    Pass only correct rollouts. The rule is ours.
    """
    return len({tuple(text[:length]) for text in texts})


def _grams(text: _Text, n: int) -> list[tuple]:
    return [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]


def _bleu(texts: Sequence[_Text], counts: Sequence[Sequence[Counter]], row: int) -> float:
    """BLEU of one text against the others."""
    length = len(texts[row])
    if length == 0:
        return 0.0
    logs = []
    for n, of_order in enumerate(counts, start=1):
        own = of_order[row]
        if not own:
            break
        others = [counter for i, counter in enumerate(of_order) if i != row]
        hits = sum(min(c, max(other[gram] for other in others)) for gram, c in own.items())
        if n == 1:
            if hits == 0:
                return 0.0
            logs.append(math.log(hits / own.total()))
        else:
            logs.append(math.log((hits + 1) / (own.total() + 1)))
    lengths = [len(text) for i, text in enumerate(texts) if i != row]
    closest = min(lengths, key=lambda reference: (abs(reference - length), reference))
    return math.exp(min(0.0, 1 - closest / length) + float(np.mean(logs)))
