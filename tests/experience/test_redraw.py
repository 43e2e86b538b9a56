"""Groups that are sampled again: of one row, and what the stage declares."""

from answering import Right, numbers_of

from rlvr_jax.experience import PLAIN, all_incorrect, experience, redraw
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.views import hint


def test_groups_of_one_row_are_sampled_again():
    view = hint(0.5)
    chain = experience(stages=[redraw(all_incorrect, view)])
    own = numpy_actor.setting(chain, prompts=3, samples=1)
    ((found, _, _),) = numpy_actor.walk(chain, Right(lambda number: 0.0), steps=1, own=own)
    assert found.metrics["redrawn_fraction"] == 1 and len(set(numbers_of(found))) == 3
    assert [request.view for request in found.batch.requests] == [view] * 3


def test_rows_are_off_policy_only_if_they_are_trained_under_another_view():
    assert redraw(all_incorrect, hint(0.5)).writes == frozenset()
    assert redraw(all_incorrect, hint(0.5), trained=PLAIN).writes == {"off_policy"}


def test_all_requested_rows_are_needed_only_if_some_are_plain():
    assert not redraw(all_incorrect, hint(0.5)).counts
    assert redraw(all_incorrect, hint(0.5), plain=1).counts
