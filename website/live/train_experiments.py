"""The experiments of "train one here". Their numbers stand in a record, train-record.json."""

from collections.abc import Sequence
from dataclasses import dataclass

Read = tuple[str, str, int]


@dataclass(frozen=True)
class Experiment:
    """A setting of the figure, a prediction, and what is read after so many updates.

    Args:
        starts: The setting as the figure's address says it.
        reads: Run, "held" or "known", updates: there the accuracy is read, in percent, of the
            held-out images or of training images.
        holds: Number of a read, "<" or ">", a bound in percent: what makes ``told`` true of a run.
        answer: The number of the choice that is true where all of ``holds`` are.
        told: What happened, of the reader's run and of the recorded ones; {0} is the first read.
        cuts: After so many updates, in which run, which part becomes what.
    """

    id: str
    group: str
    name: str
    ask: str
    choices: tuple[str, ...]
    answer: int
    told: str
    starts: str
    until: int
    reads: tuple[Read, ...]
    holds: tuple[tuple[int, str, int], ...]
    cuts: tuple[tuple[int, str, str, str], ...] = ()

    def held(self, percent: Sequence[int]) -> bool:
        """Is ``told`` true of a run with these percentages?"""
        return all(
            percent[i] < bound if sign == "<" else percent[i] > bound
            for i, sign, bound in self.holds
        )


EXPERIMENTS = (
    Experiment(
        id="moment",
        group="Watch",
        name="the moment it finds out",
        ask="In each patch a white dot says where another patch stands, whose colour is asked for. "
        "A guess is right in 27 % of the cases. How does it learn?",
        choices=("a little with each update", "nothing for long, then all at once"),
        answer=1,
        told="after 60 updates {0} % of the answers are right, after 400 {1} %.",
        starts="task=recall&depth=1",
        until=400,
        reads=(("A", "held", 60), ("A", "held", 400)),
        holds=((0, "<", 35), (1, ">", 95)),
    ),
    Experiment(
        id="digits-attention",
        group="Is it needed?",
        name="attention, for digits",
        ask="B has no mixing of tokens at all: each patch is worked on alone, then the mean is "
        "taken. How far does it get with digits?",
        choices=("a guess", "half of them", "nearly as far as A"),
        answer=2,
        told="with attention {0} %, without {1} %.",
        starts="B.mixing=none",
        until=240,
        reads=(("A", "held", 240), ("B", "held", 240)),
        holds=((0, ">", 85), (1, ">", 85)),
    ),
    Experiment(
        id="recall-attention",
        group="Is it needed?",
        name="attention, for recall",
        ask="B takes the even mean of all patches, where A has attention. How far does B get with "
        "recall?",
        choices=("a guess", "half of the answers", "nearly as far as A"),
        answer=0,
        told="with attention {0} %, with the even mean {1} %.",
        starts="task=recall&depth=1&B.mixing=mean",
        until=400,
        reads=(("A", "held", 400), ("B", "held", 400)),
        holds=((0, ">", 95), (1, "<", 35)),
    ),
    Experiment(
        id="cut-digits",
        group="Break it",
        name="attention, in mid-run",
        ask="After 240 updates attention is cut out of both blocks, and training goes on. What "
        "becomes of the digits?",
        choices=("they fall and stay down", "they fall and come back", "nothing falls"),
        answer=1,
        told="before the cut {0} %, an update after it {1} %, in the end {2} %.",
        starts="",
        until=500,
        cuts=((240, "A", "mixing", "none"),),
        reads=(("A", "held", 240), ("A", "held", 241), ("A", "held", 500)),
        holds=((0, ">", 85), (1, "<", 50), (2, ">", 85)),
    ),
    Experiment(
        id="cut-recall",
        group="Break it",
        name="the same, for recall",
        ask="After 400 updates of recall attention becomes an even mean. What do 300 more updates "
        "bring back?",
        choices=("all of it", "half of it", "nothing"),
        answer=2,
        told="before {0} %, in the end {1} %.",
        starts="task=recall&depth=1",
        until=700,
        cuts=((400, "A", "mixing", "mean"),),
        reads=(("A", "held", 400), ("A", "held", 700)),
        holds=((0, ">", 95), (1, "<", 35)),
    ),
    Experiment(
        id="cut-positions",
        group="Break it",
        name="positions",
        ask="After 240 updates the positions are taken away: from now on the patches are a bag. "
        "What do 260 more updates of digits reach?",
        choices=("a guess", "something between", "what it had before"),
        answer=1,
        told="before {0} %, right after {1} %, in the end {2} %.",
        starts="",
        until=500,
        cuts=((240, "A", "positions", "none"),),
        reads=(("A", "held", 240), ("A", "held", 241), ("A", "held", 500)),
        holds=((0, ">", 85), (1, "<", 50), (2, "<", 85)),
    ),
    Experiment(
        id="residual",
        group="Break it",
        name="the residual stream",
        ask="Six blocks, and B has no way past them. After 240 updates A reads digits. And B?",
        choices=("guesses", "lags behind", "is as good"),
        answer=0,
        told="A {0} %, B {1} %.",
        starts="depth=6&B.residual=0",
        until=240,
        reads=(("A", "held", 240), ("B", "held", 240)),
        holds=((0, ">", 80), (1, "<", 30)),
    ),
    Experiment(
        id="norm-after",
        group="Break it",
        name="norm after, no warm-up",
        ask="Six blocks, no warm-up. B normalizes behind each part, as the first Transformer did, "
        "A before it. How far is B after 100 updates?",
        choices=("ahead of A", "as far as A", "behind A"),
        answer=2,
        told="A {0} %, B {1} %.",
        starts="depth=6&warmup=0&B.norm=after",
        until=100,
        reads=(("A", "held", 100), ("B", "held", 100)),
        holds=((0, ">", 83), (1, "<", 83)),
    ),
    Experiment(
        id="rate-ten",
        group="Break it",
        name="ten times the rate, for recall",
        ask="Recall. B's learning rate is 0.04, A's is 0.004. What does B know after 400 updates?",
        choices=("what a guess knows", "half of it", "as much as A"),
        answer=0,
        told="A {0} %, B {1} %.",
        starts="task=recall&depth=1&B.rate=0.04",
        until=400,
        reads=(("A", "held", 400), ("B", "held", 400)),
        holds=((0, ">", 95), (1, "<", 35)),
    ),
    Experiment(
        id="rate",
        group="Break it",
        name="a hundred times the rate",
        ask="B's learning rate is 0.4, A's is 0.004. What does B know after 240 updates?",
        choices=("less than A, but a lot", "what a guess knows"),
        answer=1,
        told="A {0} %, B {1} %.",
        starts="B.rate=0.4",
        until=240,
        reads=(("A", "held", 240), ("B", "held", 240)),
        holds=((0, ">", 85), (1, "<", 30)),
    ),
    Experiment(
        id="lots",
        group="Be fooled",
        name="it learns 100 %",
        ask="The labels of the 300 training images are drawn by lot: there is nothing to find. How "
        "many of them are answered right after 600 updates?",
        choices=("a tenth", "half", "nearly all"),
        answer=2,
        told="in training {0} %, held out {1} %.",
        starts="task=lots",
        until=600,
        reads=(("A", "known", 600), ("A", "held", 600)),
        holds=((0, ">", 90), (1, "<", 20)),
    ),
    Experiment(
        id="large-patches",
        group="Be fooled",
        name="large patches",
        ask="Four patches of 4 × 4 in place of sixteen of 2 × 2. B has no positions. What does "
        "that cost B?",
        choices=("little or nothing", "about thirty points"),
        answer=0,
        told="with positions {0} %, without {1} %.",
        starts="task=large&B.positions=none",
        until=400,
        reads=(("A", "held", 400), ("B", "held", 400)),
        holds=((0, ">", 90), (1, ">", 88)),
    ),
)
