"""Experiments are tried on a patient and its healthy twin: what shows a claim, what does not."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from vitbook.book.faults import ClinicViT
from vitcheck.cases import Case, compare, run_case
from vitcheck.paired_models import SHOWN, judged
from website.assignments.marks import without_marks
from website.assignments.record import names_after

SIZES = {"image_size": (4, 6), "patch_size": 2, "in_channels": 1, "num_classes": 3}
SIZES |= {"embed_dim": 8, "depth": 2, "num_heads": 2, "position_std": 0.5}
FAULT = "positions missing"
CLAIM = f"{FAULT}, all, weights, patient"
MOVED = f"{FAULT}, all, images, patient"


@pytest.fixture(scope="module")
def given():
    torch.manual_seed(0)
    return ClinicViT(**SIZES).state_dict(), torch.randn(3, 1, 4, 6)


def changed(weights, part, factor):
    return {name: factor * value if part in name else value for name, value in weights.items()}


def test_an_experiment_that_shows_its_claim_is_right_in_either_order_and_precision(given):
    weights, images = given
    before, after = (weights, images), (changed(weights, "positions", 0), images)
    double = {name: value.double() for name, value in weights.items()}, images.double()
    for pair in ((before, after), [list(after), before], (double, after)):
        assert judged({FAULT: pair}, *given, CLAIM) == SHOWN


def test_a_fault_of_one_block_is_found_in_this_block_alone(given):
    weights, images = given
    silent = changed(weights, "blocks.1.mlp.fc2", 0)
    answer = {"no residual around the MLP": ((silent, images), (silent, 1 - images))}
    claim = "no residual around the MLP, {}, images, patient"
    assert judged(answer, *given, claim.format(2)) == SHOWN
    assert "patient's logits should stay" in judged(answer, *given, claim.format(1))


def test_of_several_claims_the_first_that_is_not_shown_is_named(given):
    weights, images = given
    answer = {FAULT: ((weights, images), (changed(weights, "positions", 2), images))}
    other = "last token read as class token, all, weights, patient"
    found = judged(answer, *given, f"{CLAIM} / {other}")
    assert found.startswith("last token read as class token: there is no experiment")


STAYS = "patient's logits should stay the same"
NOT_SHOWN = {
    "nothing differs": (CLAIM, lambda w, x: (w, x), "twin's logits should change"),
    "next to nothing differs": (
        CLAIM, lambda w, x: (changed(w, "", 1 + 1e-6), x),
        "change by 0.01 or more, and change by 0.0000",
    ),
    "both notice it": (CLAIM, lambda w, x: (changed(w, "patch_embed", 2), x), STAYS),
    "the twin stays": (
        CLAIM.replace("patient", "twin"), lambda w, x: (changed(w, "positions", 0), x),
        "twin's logits should stay the same",
    ),
    "logits beyond float64": (
        CLAIM, lambda w, x: (changed({n: v.double() for n, v in w.items()}, "", 1e300), x), STAYS
    ),
    "noise": (CLAIM, lambda w, x: (w, x + 0.1), "your images do, too"),
    "weights instead": (MOVED, lambda w, x: (changed(w, "positions", 0), x), "weights do, too"),
    "a weight is lost": (
        CLAIM, lambda w, x: ({"cls_token": w["cls_token"]}, x), "should have the names"
    ),
    "another shape": (
        CLAIM, lambda w, x: (w | {"head.bias": torch.zeros(1)}, x), "head.bias has the shape (1,)"
    ),
    "other images": (CLAIM, lambda w, x: (w, x[:1]), "the images has the shape"),
    "NaN": (CLAIM, lambda w, x: (changed(w, "head", torch.nan), x), "holds NaN"),
    "no tensor": (CLAIM, lambda w, x: (w, None), "should be a tensor"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_what_shows_nothing_gets_a_sentence(given, name):
    claim, other, words = NOT_SHOWN[name]
    found = judged({FAULT: (given, other(*given))}, *given, claim)
    assert found.startswith(f"{FAULT}: ")
    assert words in found


def test_names_alone_or_the_words_of_success_are_no_experiment(given):
    case = Case("q1-1", "a patient", "experiments", SHOWN, 1, args=given, claims=CLAIM)
    weights, images = given
    assert "has two conditions" in judged({FAULT: (*given, images)}, *given, CLAIM)
    assert "pair of weights and images" in judged({FAULT: (images, images)}, *given, CLAIM)
    for answer in (SHOWN, FAULT, [FAULT], {FAULT: FAULT}, 3, images):
        verdict = compare(answer, case)
        assert not verdict.ok
        assert verdict.message.startswith(f"{FAULT}: ")
    right = {FAULT: ((weights, images), (changed(weights, "positions", 0), images))}
    assert compare(right, case).ok
    assert compare(None, case).message == "not answered yet"


def test_many_threads_judge_as_one_does(drawn):
    """All questions of an assignment, right and wrong answers; experiments many times at once:
    a model that threads shared would hold the weights of another's."""
    sources, pairs = list(drawn.master.setup), []
    for question, asked in zip(drawn.master.questions, drawn.cases.questions, strict=True):
        if question.manual:
            continue
        sources.append(without_marks(question.solution))
        names = names_after(*sources)
        for case in asked.cases:
            torch.manual_seed(0)
            pairs.append((run_case(names, case), case))
            pairs += [(mistake.gives, case) for mistake in case.mistakes]
    pairs += 12 * [pair for pair in pairs if pair[1].claims]
    alone = [compare(*pair) for pair in pairs]
    assert any(verdict.ok for verdict in alone)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda pair: compare(*pair), pairs)) == alone
