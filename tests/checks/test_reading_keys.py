"""The keys of the exercises that read a table agree with one another."""

import pytest

from vitcheck import CheckFailed
from vitcheck.exercises import (
    hybrids,
    looking,
    pretraining,
    what_attention_buys,
    your_own_layer,
)
from vitcheck.reading import OPEN, reading

# two rows of a table whose intervals overlap, and whose paired difference is missing or holds zero
LIKE_ONE_ANOTHER = {
    "the map agrees with it as well as a second occlusion": looking._STATEMENTS,
    "stem and CNN are equally good": pretraining._STATEMENTS,
    "the beginning is a better place for it than the end": hybrids._STATEMENTS,
    "on task 2, A and B are equally good": what_attention_buys._STATEMENTS,
    "on task 1, Z and attention are equally good": your_own_layer._STATEMENTS,
}
CHECK = reading("the words", {"a": ("yes", "why?"), "b": ("no", "which?")})


@pytest.mark.parametrize("statement", LIKE_ONE_ANOTHER)
def test_intervals_that_overlap_decide_nothing_in_any_chapter(statement):
    answer, _ = LIKE_ONE_ANOTHER[statement][statement]
    assert answer == OPEN


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a": "maybe", "b": "no"}, 'a: answer "yes", "no" or "cannot say"'),
        ({"a": True, "b": "no"}, 'a: answer "yes", "no" or "cannot say"'),
        ({"a": "yes"}, "'b' has lost its answer"),
        ({"a": "yes", "b": "cannot say"}, "b: which?"),
    ],
)
def test_another_word_a_missing_answer_and_a_wrong_one_are_told_apart(given, words):
    with pytest.raises(CheckFailed, match=words):
        CHECK(lambda: given)


def test_a_check_of_statements_brings_its_answer_and_every_other_along():
    assert CHECK.right() == {"a": "yes", "b": "no"}
    assert [(question, *answer().values()) for question, answer in CHECK.mistakes] == [
        ("why?", "no", "no"),
        ("why?", "cannot say", "no"),
        ("which?", "yes", "yes"),
        ("which?", "yes", "cannot say"),
    ]
