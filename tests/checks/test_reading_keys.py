"""The keys of the exercises that read a table agree with one another."""

import pytest

from vitcheck import ch12_looking, ch14_pretraining, ch17_hybrids, ch18_what_attention_buys
from vitcheck.reading import OPEN

# two rows of a table whose intervals overlap, and whose paired difference is missing or holds zero
LIKE_ONE_ANOTHER = {
    "the map agrees with it as well as a second occlusion": ch12_looking._STATEMENTS,
    "stem and CNN are equally good": ch14_pretraining._STATEMENTS,
    "the beginning is a better place for it than the end": ch17_hybrids._STATEMENTS,
    "on task 2, A and B are equally good": ch18_what_attention_buys._STATEMENTS,
}


@pytest.mark.parametrize("statement", LIKE_ONE_ANOTHER)
def test_intervals_that_overlap_decide_nothing_in_any_chapter(statement):
    answer, _ = LIKE_ONE_ANOTHER[statement][statement]
    assert answer == OPEN
