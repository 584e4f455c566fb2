"""Checks of chapter 15: token mixing, its bill, another grid, what a table of orders says."""

import torch.nn.functional as F

from vitcheck.reading import NO, OPEN, YES, judge
from vitcheck.trial import Trial, staged


@staged("my_token_mixing", ok="one MLP down each column, the same for all channels")
def check_token_mixing(trial: Trial, my_token_mixing):
    """my_token_mixing(x, W1, b1, W2, b2): x (B, N, D), W1 (S, N), W2 (N, S) -> (B, N, D)."""
    B, N, D, S = 2, 5, 5, 5  # all alike, so that a wrong axis has the right shape
    x, W1, b1 = trial.randn(B, N, D), trial.randn(S, N), trial.randn(S)
    W2, b2 = trial.randn(N, S), trial.randn(N)

    def mix(x, act=F.gelu):
        return (act(x.mT @ W1.T + b1) @ W2.T + b2).mT

    along_rows = F.gelu(x @ W1.T + b1) @ W2.T + b2
    trial.stage("which axis is mixed")
    trial.match(
        my_token_mixing(x, W1, b1, W2, b2),
        mix(x),
        {
            "W1 met the channels of a token. Which axis has N entries?": along_rows,
            "the axes are still exchanged: back to (B, N, D)": mix(x).mT,
            "there is no nonlinearity between the two layers": mix(x, lambda h: h),
            "ReLU and GELU differ; the block has a GELU": mix(x, F.relu),
            "the residual is added by the block, not here": x + mix(x),
            "the biases are missing": (F.gelu(x.mT @ W1.T) @ W2.T).mT,
            "is W1 (out, in) or (in, out)?": [
                (F.gelu(x.mT @ W1 + b1) @ W2.T + b2).mT,
                (F.gelu(x.mT @ W1 + b1) @ W2 + b2).mT,
                (F.gelu(x.mT @ W1.T + b1) @ W2 + b2).mT,
            ],
        },
        otherwise="take one channel: its N numbers go through W1, GELU and W2",
        tolerance=1e-4,
    )
    trial.stage("other sizes")
    x, W1, b1 = trial.randn(1, 4, 3), trial.randn(6, 4), trial.randn(6)
    W2, b2 = trial.randn(4, 6), trial.randn(4)
    trial.close(
        my_token_mixing(x, W1, b1, W2, b2),
        mix(x),
        "is a size typed somewhere?",
        tolerance=1e-4,
    )


@staged("my_bill", ok="token mixing, channel mixing, and what is stored for them")
def check_mixer_bill(trial: Trial, my_bill):
    """my_bill(N, D, S): multiplications and weights (no biases) of a block with MLP ratio 4."""
    N, D, S = trial.integer(20, 30), trial.integer(31, 40), trial.integer(5, 15)
    tokens, channels = 2 * N * S, 8 * D**2
    given = trial.pair(my_bill(N, D, S))
    trial.stage("multiplications")
    trial.match(
        trial.number(given[0], name="multiplications"),
        tokens * D + channels * N,
        {
            "the token mixing runs once for each channel": tokens + channels * N,
            "the channel mixing runs once for each token": tokens * D + channels,
            "an MLP has two layers": [
                tokens * D / 2 + channels * N,
                tokens * D + channels * N / 2,
                (tokens * D + channels * N) / 2,
            ],
            "that is attention's bill; what does token mixing multiply by N x N?": 12 * N * D**2
            + 2 * N**2 * D,
            "the hidden layer of the channel mixing has 4 D numbers": tokens * D + 2 * D**2 * N,
            "is the hidden width of the token mixing N, or S?": 2 * N * N * D + channels * N,
        },
        otherwise="two products with N x S for each channel, two with D x 4D for each token",
        tolerance=1e-9,
        name="multiplications",
    )
    trial.stage("weights")
    trial.match(
        trial.number(given[1], name="weights"),
        tokens + channels,
        {
            "are the token mixing's weights others for each channel?": tokens * D + channels,
            "are the channel mixing's weights others for each token?": tokens + channels * N,
            "an MLP has two layers": [tokens / 2 + channels, tokens + channels / 2],
            "that counts multiplications again": tokens * D + channels * N,
            "biases are not asked for": tokens + S + N + channels + 5 * D,
        },
        otherwise="two matrices for the tokens, two for the channels",
        tolerance=1e-9,
        name="weights",
    )


@staged("my_enlarged", ok="a smooth table is mixed on the new grid as on the old one")
def check_enlarged(trial: Trial, my_enlarged):
    """my_enlarged(W1, W2, grid): each place becomes 2 x 2 places -> W1 (S, 4 N), W2 (4 N, S)."""
    rows, columns, S, D = 2, 3, 4, 5
    N = rows * columns
    W1, W2, x = trial.randn(S, N), trial.randn(N, S), trial.randn(N, D)

    def wider(table):
        """(N, D) -> (4 N, D), each token four times, where it stands."""
        grid = table.unflatten(0, (rows, columns))
        return grid.repeat_interleave(2, dim=0).repeat_interleave(2, dim=1).flatten(0, 1)

    trial.stage("shapes")
    new1, new2 = trial.pair(my_enlarged(W1, W2, (rows, columns)))
    new1 = trial.tensor(new1, (S, 4 * N), name="W1")
    new2 = trial.tensor(new2, (4 * N, S), name="W2")
    large = wider(x)
    trial.stage("what a hidden unit hears")
    right, wide1 = W1 @ x, wider(W1.T).T
    trial.match(
        new1 @ large,
        right,
        {
            "each place is heard four times now. Is the unit four times as loud?": 4 * right,
            "four places share what one had: a quarter, or a half?": 2 * right,
            "the copies do not stand where the patch stands: lay W1 out on its grid first": [
                c * W1.repeat(1, 4) @ large for c in (1, 0.25)
            ]
            + [c * W1.repeat_interleave(4, dim=1) @ large for c in (1, 0.25)],
        },
        otherwise="let the same table, each token four times, go through the old and the new W1",
        tolerance=1e-4,
        name="W1 @ x",
    )
    trial.stage("each copy alike")
    trial.close(new1, wide1 / 4, "do all four copies of a place weigh the same?", tolerance=1e-4)
    trial.stage("what a hidden unit says")
    h = trial.randn(S, D)
    said = wider(W2 @ h)
    trial.match(
        new2 @ h,
        said,
        {
            "W2 speaks to each place on its own. Does anything add up here?": [said / 4, said / 2],
            "the copies do not stand where the patch stands": [
                c * W2.repeat(4, 1) @ h for c in (1, 0.25)
            ]
            + [c * W2.repeat_interleave(4, dim=0) @ h for c in (1, 0.25)],
        },
        otherwise="each of the four new places should be told what the old one was told",
        tolerance=1e-4,
        name="W2 @ h",
    )


_STATEMENTS = {
    "A uses where a patch stands": (YES, "compare its two columns"),
    "B uses where a patch stands": (NO, "does anything change for B when the patches move?"),
    "A was built with the knowledge which patches are neighbours": (
        NO,
        "A learned the reordered images as well. Who told it about neighbours there?",
    ),
    "with positions added, A would be better": (
        OPEN,
        "the interval holds zero. Which other values does it hold?",
    ),
    "B would gain from positions": (OPEN, "was B trained with positions anywhere in the table?"),
}


@staged("my_reading", ok="what the orders show, and what they leave open")
def check_orders(trial: Trial, my_reading):
    """my_reading(): a dictionary from statement to "yes", "no" or "cannot say"."""
    judge(trial, my_reading(), _STATEMENTS)
