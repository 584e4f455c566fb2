"""Checks of chapter 0, the preview."""

import re

import torch

from vitbook.checks.stages import staged


@staged("number of tokens", ok="every count is right, class tokens included.")
def check_token_count(trial, my_counts):
    """The answers {"32 x 48, patch 8": count, ...} for ViTs with a class token."""
    answers = my_counts()
    if not isinstance(answers, dict):
        trial.fail("return a dictionary from image to number of tokens")
    if any(answer is ... for answer in answers.values()):
        raise NotImplementedError
    for image, answer in answers.items():
        trial.stage(image)
        H, W, P = (int(number) for number in re.findall(r"\d+", image))
        patches = H * W // P**2
        trial.ask(answer != patches, "these are the patches; which token is not a patch?")
        trial.ask(answer != H * W // P + 1, "a patch is P pixels wide and P pixels high")
        trial.ask(
            answer != H // P + W // P + 1, "rows and columns of patches: added or multiplied?"
        )
        trial.ask(answer == patches + 1, "how many patches fit into a row, and how many rows?")


@staged("strongest patch", ok="it finds the patch, and the class token itself does not count.")
def check_strongest_patch(trial, strongest):
    """(row, column) of the patch that the class token looks at most."""
    rows, columns = 3, 5
    for _ in range(4):
        N = rows * columns
        weights = trial.randn(N + 1, N + 1).softmax(-1)
        weights[0, 0] = 2.0  # the class token looks at itself most
        trial.stage("a pair")
        answer = trial.pair(strongest(weights.clone(), columns))
        row, column = (int(trial.number(value)) for value in answer)
        want = divmod(int(weights[0, 1:].argmax()), columns)
        trial.stage("which token is left out")
        with_class = divmod(int(weights[0].argmax()), columns)
        shifted = divmod(int(weights[0, 1:].argmax()) + 1, columns)
        trial.ask(
            (row, column) not in (with_class, shifted) or (row, column) == want,
            "is the class token a patch? Column 0 of the matrix is the class token itself.",
        )
        trial.stage("which row is read")
        looked_at = divmod(int(weights[1:, 0].argmax()), columns)
        trial.ask(
            (row, column) != looked_at or looked_at == want,
            "you asked who looks at the class token; whom does it look at?",
        )
        trial.stage("row and column")
        trial.ask((row, column) != want[::-1] or want[0] == want[1], "which one is the row?")
        by_rows = divmod(int(weights[0, 1:].argmax()), rows)
        trial.ask(
            (row, column) != by_rows or by_rows == want,
            "how many patches make a row: as many as there are rows, or columns?",
        )
        trial.ask((row, column) == want, "the strongest patch is another one")


@staged("hide_patch", ok="that patch is gone, everything else is as it was.")
def check_hide_patch(trial, hide):
    """Images (B, C, H, W) with one patch filled with the image's mean."""
    P, rows, columns = 4, 2, 3
    images = trial.randn(2, 3, rows * P, columns * P)
    for patch in (0, 4, 2):
        trial.stage(f"patch {patch}")
        hidden = trial.tensor(hide(images, patch, P), images.shape)
        top, left = P * (patch // columns), P * (patch % columns)
        inside = torch.zeros(rows * P, columns * P, dtype=torch.bool)
        inside[top : top + P, left : left + P] = True
        changed = (hidden != images).any(dim=1).any(dim=0)
        trial.ask(changed.any(), "nothing has changed; do you return the new images?")
        trial.ask(
            ~changed[~inside],
            "pixels outside the patch have changed; where does patch "
            f"{patch} begin when a row has {columns} patches?",
        )
        filling = hidden[:, :, inside]  # (B, C, P * P)
        trial.stage(f"filling of patch {patch}")
        trial.ask(
            not torch.allclose(filling, images.mean().expand_as(filling), atol=1e-5),
            "that is the mean of the whole batch; each image has its own",
        )
        trial.ask(
            not torch.allclose(
                filling, images.mean((2, 3))[:, :, None].expand_as(filling), atol=1e-5
            ),
            "that is one mean for each channel; one for each image is asked for",
        )
        trial.close(
            filling,
            images.mean((1, 2, 3))[:, None, None].expand_as(filling).contiguous(),
            "what is it filled with? The mean over all pixels and channels of that image is asked.",
        )


@staged("rollout", ok="shares are right and sum to one.")
def check_rollout(trial, rollout):
    """Rollout of maps (L, h, N, N), heads averaged, half residual, later layers from the left."""
    L, h, N = 3, 2, 5
    maps = trial.randn(L, h, N, N).mul(2).softmax(-1)
    trial.stage("shape")
    got = trial.tensor(rollout(maps), (N, N))
    trial.stage("rows")
    one = torch.ones(N)
    trial.ask(
        not torch.allclose(got.sum(-1), 2.0**L * one, atol=1e-3),
        "the rows sum to more than one; is it half and half?",
    )
    trial.ask(
        not torch.allclose(got.sum(-1), h**L * one, atol=1e-3),
        "the rows sum to more than one; were the heads averaged or added?",
    )
    trial.close(got.sum(-1), one, "each row is a list of shares; it should sum to one")
    trial.stage("values")
    eye, mean = torch.eye(N), maps.mean(1)
    half = 0.5 * mean + 0.5 * eye
    trial.ask(
        not torch.allclose(got, mean[2] @ mean[1] @ mean[0], atol=1e-5),
        "where is the residual connection?",
    )
    trial.ask(
        not torch.allclose(got, half[0] @ half[1] @ half[2], atol=1e-5),
        "the order is turned round: which layer acts last on the tokens?",
    )
    trial.close(got, half[2] @ half[1] @ half[0], "follow a weight from the last layer down")
