"""Checks of chapter 10: from blocks to a class."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from vitbook.attention import scaled_dot_product_attention
from vitbook.vit import VisionTransformer
from vitcheck.trial import staged


@staged("read-out", ok="one vector an image, from the token or from the patches alone.")
def check_readout(trial, my_readout):
    """my_readout(features, pool): (B, N + 1, D), class token first; "cls" or "mean" -> (B, D)."""
    B, N, D = 2, 6, 5
    features = trial.randn(B, N + 1, D)
    trial.stage("cls")
    got = trial.tensor(my_readout(features, "cls"), (B, D))
    trial.ask(
        not torch.allclose(got, features[:, -1]),
        "that is the last token; where does the class token stand?",
    )
    for mean in (features.mean(1), features[:, 1:].mean(1)):
        trial.ask(not torch.allclose(got, mean), "that is a mean; is pool looked at?")
    trial.close(got, features[:, 0], "which row of an image is the class token's?")
    trial.stage("mean")
    got = trial.tensor(my_readout(features, "mean"), (B, D))
    mistakes = {
        "the class token is no patch; is it in your mean?": features.mean(1),
        "the class token is no patch; is it in the number you divide by?": (
            features[:, 1:].sum(1) / (N + 1)
        ),
        "that is a sum; does it grow with the image?": features[:, 1:].sum(1),
        "that is the class token again; is pool looked at?": features[:, 0],
        "you left out the last patch; which one is to be left out?": features[:, :-1].mean(1),
    }
    for question, mistaken in mistakes.items():
        trial.ask(not torch.allclose(got, mistaken, atol=1e-5), question)
    order = torch.arange(N, 0, -1)
    moved = features[:, [0, *order.tolist()]]
    trial.close(my_readout(moved, "mean"), got, "may the order of the patches change the mean?")
    moved = features.clone()
    moved[:, 0] += 1
    trial.close(my_readout(moved, "mean"), got, "change the class token: may the mean move?")
    trial.close(
        trial.tensor(my_readout(torch.ones(B, N + 1, D), "mean"), (B, D)),
        torch.ones(B, D),
        "what is the mean of ones?",
    )
    more = features.clone()
    more[:, 1:] += 2
    trial.close(
        my_readout(more, "mean"), got + 2, "add 2 to every patch: by how much does it move?"
    )


@staged("positions in line", ok="every patch has its own row, and the class token has none.")
def check_in_line(trial, my_tokens):
    """my_tokens(cls, patches, table): (1, 1, D), (B, N, D), (N, D) -> (B, N + 1, D)."""
    B, N, D = 2, 6, 5
    cls, patches, table = trial.randn(1, 1, D), trial.randn(B, N, D), trial.randn(N, D)
    trial.stage("shape")
    got = trial.tensor(my_tokens(cls, patches, table), (B, N + 1, D))
    trial.stage("class token")
    trial.ask(
        not torch.allclose(got[:, -1], cls[0].expand(B, -1)),
        "it stands at the end; the head will read token 0",
    )
    trial.ask(
        not torch.allclose(got[:, 0], (cls + table[0])[0].expand(B, -1)),
        "it took the row of the first patch; who has taken whose row then?",
    )
    trial.close(got[:, 0], cls[0].expand(B, -1), "what is the class token, before any block?")
    trial.stage("patches")
    added = got[:, 1:] - patches
    trial.ask(not torch.allclose(added, torch.zeros(1), atol=1e-5), "no patch was told its place")
    late = F.pad(table[1:], (0, 0, 0, 1))
    trial.ask(
        not torch.allclose(added, late.expand(B, -1, -1), atol=1e-5),
        "each patch has the row of the next one, the last has none: where did the table start?",
    )
    early = F.pad(table[:-1], (0, 0, 1, 0))
    trial.ask(
        not torch.allclose(added, early.expand(B, -1, -1), atol=1e-5),
        "each patch has the row of the one before, the first has none: where did it start?",
    )
    trial.close(added, table.expand(B, -1, -1), "is row n of the table added to patch n?")


@staged("parameters", ok="your count is that of the package, on three models.")
def check_parameters(trial, my_count):
    """my_count(image_size, patch_size, in_channels, num_classes, embed_dim, depth) -> number."""
    for image_size, P, C, K, heads in ((28, 7, 1, 10, 2), (32, 4, 3, 7, 4), (48, 8, 3, 100, 8)):
        D, L = 8 * trial.integer(3, 9), trial.integer(2, 5)
        with torch.device("meta"):  # shapes, no numbers
            model = VisionTransformer(
                image_size=image_size,
                patch_size=P,
                in_channels=C,
                num_classes=K,
                embed_dim=D,
                depth=L,
                num_heads=heads,
            )
        want = sum(p.numel() for p in model.parameters())
        biases = sum(p.numel() for name, p in model.named_parameters() if name.endswith("bias"))
        trial.stage(f"images of {image_size}, D = {D}, L = {L}")
        got = trial.number(my_count(image_size, P, C, K, D, L))
        missing = want - got
        reasons = {
            K: "K numbers are missing: has the head a bias?",
            D: "D numbers are missing: the class token, its row of the table, or a bias?",
            2 * D: "2 D are missing: the last norm, or the class token and its row?",
            4 * D * L: "4 D a block are missing: how many norms has a block, of how many numbers?",
            9 * D * L: "9 D a block are missing: which linear layers of a block have a bias?",
            13 * D * L: "13 D a block are missing: norms, and the biases of the linear layers?",
            biases: "are those the weights alone? Biases learn too",
            ((image_size // P) ** 2 + 1) * D: "where is the table of positions?",
            (L - 1) * (12 * D * D + 13 * D): "that is one block; how many are there?",
            L * 4 * D * D: "4 D squared a block are missing: who projects the heads' output?",
            (C - 1) * P * P * D: "how many numbers has a patch of C channels?",
        }
        if missing and missing in reasons:
            trial.fail(reasons[missing])
        trial.ask(
            missing >= 0,
            f"{-missing:.0f} too many; is anything counted for each head or for each token?",
        )
        trial.ask(missing == 0, f"{missing:.0f} are missing; count the parts one by one")


@staged("q, k and v in one", ok="one matrix does what the three did.")
def check_merge_qkv(trial, my_merge):
    """my_merge(q, k, v): three nn.Linear(D, D) -> weight (3 D, D) and bias (3 D,) of `qkv`."""
    B, N, D, h = 2, 5, 12, 3
    q, k, v = (nn.Linear(D, D) for _ in range(3))
    with torch.no_grad():
        for layer in (q, k, v):
            layer.weight.copy_(trial.randn(D, D) / 3)
            layer.bias.copy_(trial.randn(D))
    weight, bias = trial.pair(my_merge(q, k, v))
    trial.stage("shapes")
    weight = trial.tensor(weight, (3 * D, D), name="the weight").detach()
    bias = trial.tensor(bias, (3 * D,), name="the bias").detach()
    trial.stage("weight")
    ours = [layer.weight.detach() for layer in (q, k, v)]
    trial.ask(
        not torch.allclose(weight, torch.cat([w.T for w in ours])),
        "nn.Linear.weight is (out, in) already; did you transpose it?",
    )
    apart = torch.stack(ours).unflatten(1, (h, -1)).transpose(0, 1).flatten(0, 2)
    trial.ask(
        not torch.allclose(weight, apart),
        "here the rows of all queries come first, then all keys; yours are sorted by head",
    )
    parts = weight.chunk(3)
    names = {"q": ours[0], "k": ours[1], "v": ours[2]}
    found = [next((n for n, w in names.items() if torch.allclose(w, p)), "?") for p in parts]
    trial.ask(
        "?" in found or found == ["q", "k", "v"],
        f"the order is {', '.join(found)}; in which order does `qkv` hold them?",
    )
    trial.stage("bias")
    trial.ask(bias.abs().max() > 0, "are the three biases lost?")
    x = trial.randn(B, N, D)
    projected = x @ weight.T
    want = torch.cat([layer(x).detach() for layer in (q, k, v)], dim=-1)
    trial.close((projected + bias)[..., :D], want[..., :D], "is q(x) where it belongs?")
    trial.close(projected + bias, want, "do keys and values have their own bias?")
    trial.stage("attention")
    split = [part.unflatten(-1, (h, -1)).transpose(1, 2) for part in want.chunk(3, -1)]
    merged = (projected + bias).unflatten(-1, (3, h, -1)).permute(2, 0, 3, 1, 4)
    trial.close(
        scaled_dot_product_attention(*merged)[0],
        scaled_dot_product_attention(*split)[0],
        "do the heads find their queries, keys and values?",
    )


@staged("two losses", ok="you know a healthy first loss, and the floor of a doubled softmax.")
def check_losses(trial, my_losses):
    """my_losses(K) -> (loss of equal logits, least loss when softmax is applied twice)."""
    for K in (10, 2, trial.integer(20, 1000)):
        start, floor = trial.pair(my_losses(K))
        equal = F.cross_entropy(torch.zeros(1, K), torch.zeros(1, dtype=torch.long)).item()
        trial.stage(f"loss at the start, {K} classes")
        start = trial.number(start)
        mistakes = {
            "that is a probability; the loss is its negative logarithm": 1 / K,
            "a loss of log p is negative here; which sign has cross-entropy?": -equal,
            "that is in bits; cross_entropy takes the natural logarithm": math.log2(K),
            "that is the share of wrong guesses; cross-entropy is another measure": 1 - 1 / K,
            "a loss of zero: would all classes be right?": 0.0,
        }
        for question, mistaken in mistakes.items():
            trial.ask(abs(start - mistaken) > 1e-6, question)
        trial.close(start, equal, "with equal logits, which probability has the right class?")
        trial.stage(f"softmax twice, {K} classes")
        floor = trial.number(floor)
        mistakes = {
            "that is the floor for logits, which may grow without end; may probabilities?": 0.0,
            "that is a model that knows nothing; what if it is entirely sure, and right?": equal,
            "that is minus the probability; which function of it is the loss?": -1.0,
            "how many wrong classes are there?": math.log(math.e + K) - 1,
            "that is the log of the sum; what does the right class take off?": (
                math.log(math.e + K - 1)
            ),
            "that is a probability; the loss is its negative log": math.e / (math.e + K - 1),
        }
        for question, mistaken in mistakes.items():
            trial.ask(abs(floor - mistaken) > 1e-6, question)
        sure = torch.eye(K)[:1]  # what the first softmax returns at best
        least = F.cross_entropy(sure, torch.zeros(1, dtype=torch.long)).item()
        trial.close(floor, least, "feed cross_entropy with the row 1, 0, 0, ...: what is it?")
