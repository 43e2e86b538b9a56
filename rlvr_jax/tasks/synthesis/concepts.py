"""Subjects of new problems: budgets of kinds, and concepts that fit together."""

from collections.abc import Sequence

import numpy as np


def slopes(accuracy: np.ndarray) -> np.ndarray:
    """Least-squares slope of each row's accuracies against 0, 1, …; 0 for fewer than two; [P].

    Args:
      accuracy: [P, T], accuracy of each prompt in each epoch.
    """
    epochs = accuracy.shape[1]
    if epochs < 2:
        return np.zeros(len(accuracy))
    place = np.arange(epochs) - (epochs - 1) / 2
    return (accuracy - accuracy.mean(axis=1, keepdims=True)) @ place / (place @ place)


def failed(
    accuracy: np.ndarray, threshold: float, most_slope: float = 0.0, included: bool = False
) -> np.ndarray:
    """Prompts that were never solved often, and less often over time; bool [P].

    Args:
      accuracy: [P, T], accuracy of each prompt in each epoch; with one epoch there is no slope.
      threshold: the highest accuracy must be below it.
      most_slope: the slope must be below it.
      included: a slope at the bound also counts, such as 0 for a prompt that was never solved.
    """
    slope = slopes(accuracy)
    falls = slope <= most_slope if included else slope < most_slope
    falls = falls if accuracy.shape[1] > 1 else np.ones(len(accuracy), bool)
    return (accuracy.max(axis=1) < threshold) & falls


def budgets(fail: np.ndarray, kind: np.ndarray, kinds: int, total: float) -> np.ndarray:
    """Number of new problems of each kind, in proportion to its fraction of failed prompts; [K].

    Args:
      fail: bool [P].
      kind: int [P], in 0 .. kinds - 1.
      kinds: number of kinds (K).
      total: number of all new problems; split evenly if no prompt failed.
    """
    number = np.bincount(kind, minlength=kinds)
    rate = np.bincount(kind, weights=fail, minlength=kinds) / np.maximum(number, 1)
    return total * (rate / rate.sum() if rate.sum() > 0 else np.full(kinds, 1 / kinds))


def concept_scores(
    chosen: Sequence[int], together: np.ndarray, embeddings: np.ndarray
) -> np.ndarray:
    """The number of common problems of each concept with the chosen ones, plus the cosine of its
    embedding to their mean; [C].

    Args:
      chosen: at least one.
      together: [C, C], number of problems in which two concepts occur.
      embeddings: embedding of each concept, [C, D].
    Source: SwS, https://github.com/MasterVito/SwS, whose released sampler pairs the cosines with
      other concepts.
    """
    chosen = list(chosen)
    middle = embeddings[chosen].mean(axis=0)
    size = np.linalg.norm(embeddings, axis=1) * np.linalg.norm(middle)
    cosine = embeddings @ middle / np.where(size > 0, size, 1)
    return together[chosen].sum(axis=0) + cosine


def concept_chances(
    chosen: Sequence[int], together: np.ndarray, embeddings: np.ndarray, temperature: float
) -> np.ndarray:
    """softmax(score / τ) over the concepts that are not chosen yet; [C].

    Args:
      chosen: numbers of the chosen concepts.
      together: [C, C], number of problems that two concepts share.
      embeddings: [C, D], one row per concept.
      temperature: temperature of the softmax, above 0 (τ).
    """
    score = concept_scores(chosen, together, embeddings) / temperature
    score[list(chosen)] = -np.inf
    weight = np.exp(score - score.max())
    return weight / weight.sum()


def combination(
    random: np.random.Generator, subjects: Sequence[Sequence[str]], size: int, temperature: float
) -> list[str]:
    """Concepts that fit together: the first ∝ its frequency, each next one by `concept_chances`.

    The embedding of a concept is its row of the table of common problems. The paper's are those of
    a language model.

    Args:
      random: source of the choices.
      subjects: the concepts of each problem.
      size: number of concepts, or all if there are fewer.
      temperature: τ of `concept_chances`.
    """
    names = sorted({name for subject in subjects for name in subject})
    there = np.array([[name in subject for name in names] for subject in subjects], float)
    together = there.T @ there
    often = together.diagonal() / together.trace()
    np.fill_diagonal(together, 0)
    chosen = [int(random.choice(len(names), p=often))]
    while len(chosen) < min(size, len(names)):
        chances = concept_chances(chosen, together, together, temperature)
        chosen.append(int(random.choice(len(names), p=chances)))
    return [names[number] for number in chosen]
