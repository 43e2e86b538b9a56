"""What was said of pairs of answers is kept with their grades, the first few, cut short."""

import dataclasses
import json

from rlvr_jax.experience import experience
from rlvr_jax.experience.heard import MOST, WORDS, Heard, with_heard
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.tasks import Comparison, Grade


def sampled():
    return numpy_actor.walk(experience(), steps=1)[0][0].batch


def test_both_of_a_pair_keep_what_was_said():
    batch = sampled()
    texts = [response.text for response in batch.responses]
    heard = [Heard((0, 2), (3.0, 7.0), "so"), Heard((2, 0), None, "hm"), Heard((1, 3), None, "")]
    grades = with_heard(batch, heard).grades
    assert grades[0].compared == (
        Comparison(2, texts[2], True, (3.0, 7.0), "so"),
        Comparison(2, texts[2], False, None, "hm"),
    )
    assert grades[2].compared == (
        Comparison(0, texts[0], False, (7.0, 3.0), "so"),
        Comparison(0, texts[0], True, None, "hm"),
    )
    assert grades[1] == batch.grades[1] and grades[3] == batch.grades[3]


def test_what_is_kept_is_bounded():
    batch = sampled()
    heard = [
        Heard((0, 1), (1.0, 2.0), f"{number} " + "x" * 2 * WORDS) for number in range(2 * MOST)
    ]
    kept = with_heard(batch, heard).grades[1].compared
    assert [int(own.words.split()[0]) for own in kept] == list(range(MOST))
    assert {len(own.words) for own in kept} == {WORDS}


def test_a_grade_with_comparisons_goes_through_json():
    grade = Grade(1.0, compared=[Comparison(3, "one", True, (1.0, 2.0), "so")])
    told = json.loads(json.dumps(dataclasses.asdict(grade)))
    assert Grade(**told).compared[0]._asdict() == grade.compared[0]._asdict() | {"scores": [1, 2]}
