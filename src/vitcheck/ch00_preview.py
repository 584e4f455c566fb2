"""Checks of chapter 0, the preview."""

import re

import torch

from vitcheck.trial import Trial, staged


@staged("number of tokens", ok="every count is right, class tokens included.")
def check_token_count(trial: Trial, my_counts):
    """The answers {"32 x 48, patch 8": count, ...} for ViTs with a class token."""
    images = ("8 x 8, patch 2", "224 x 224, patch 16", "32 x 48, patch 8", "224 x 224, patch 32")
    for image, answer in trial.answers(my_counts(), images).items():
        trial.stage(image)
        H, W, P = (int(number) for number in re.findall(r"\d+", image))
        patches = H * W // P**2
        trial.match(
            answer,
            patches + 1,
            {
                "these are the patches; which token is not a patch?": patches,
                "a patch is P pixels wide and P pixels high": H * W // P + 1,
                "rows and columns of patches: added or multiplied?": H // P + W // P + 1,
            },
            otherwise="how many patches fit into a row, and how many rows?",
        )


@staged("strongest patch", ok="it finds the patch, and the class token itself does not count.")
def check_strongest_patch(trial: Trial, strongest):
    """(row, column) of the patch that the class token looks at most."""
    rows, columns = 3, 5
    N = rows * columns
    for patch in (11, 4, 13, 9):  # places that no mistake below confuses with another
        weights = trial.randn(N + 1, N + 1).softmax(-1)
        weights[0, 0] = 2.0  # the class token looks at itself most
        weights[0, 1 + patch] = weights[1 + (patch + 3) % N, 0] = 1.5
        trial.stage("a pair")
        pair = trial.pair(strongest(weights.clone(), columns))
        answer = torch.tensor([int(trial.number(value)) for value in pair])
        to_patches, from_patches = weights[0, 1:].argmax(), weights[1:, 0].argmax()
        trial.stage("which patch")
        trial.match(
            answer,
            place(to_patches, columns),
            {
                "is the class token a patch? Column 0 of the matrix is the class token itself.": [
                    place(weights[0].argmax(), columns),
                    place(to_patches + 1, columns),
                ],
                "you asked who looks at the class token; whom does it look at?": place(
                    from_patches, columns
                ),
                "which one is the row?": place(to_patches, columns).flip(0),
                "how many patches make a row: as many as there are rows, or columns?": place(
                    to_patches, rows
                ),
            },
            otherwise="the strongest patch is another one",
        )


def place(patch, columns):
    """(row, column) of a patch, as a tensor."""
    return torch.tensor(divmod(int(patch), columns))


@staged("hide_patch", ok="that patch is gone, everything else is as it was.")
def check_hide_patch(trial: Trial, hide):
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

        def filled(value, like=filling):
            return value.expand_as(like)

        trial.match(
            filling,
            filled(images.mean((1, 2, 3))[:, None, None]),
            {
                "that is the mean of the whole batch; each image has its own": filled(
                    images.mean()
                ),
                "that is one mean for each channel; one for each image is asked for": filled(
                    images.mean((2, 3))[:, :, None]
                ),
            },
            otherwise="what is it filled with? The mean over all pixels and channels of that image "
            "is asked.",
        )


@staged("rollout", ok="shares are right and sum to one.")
def check_rollout(trial: Trial, rollout):
    """Rollout of maps (L, h, N, N), heads averaged, half residual, later layers from the left."""
    L, h, N = 3, 2, 5
    maps = trial.randn(L, h, N, N).mul(2).softmax(-1)
    trial.stage("shape")
    got = trial.tensor(rollout(maps), (N, N))
    trial.stage("rows")
    one = torch.ones(N)
    trial.match(
        got.sum(-1),
        one,
        {
            "the rows sum to more than one; is it half and half?": 2.0**L * one,
            "the rows sum to more than one; were the heads averaged or added?": [
                h**L * one,
                ((h + 1) / 2) ** L * one,
            ],
        },
        otherwise="each row is a list of shares; it should sum to one",
        tolerance=1e-4,
    )
    trial.stage("values")
    eye, mean = torch.eye(N), maps.mean(1)
    half = 0.5 * mean + 0.5 * eye
    trial.match(
        got,
        half[2] @ half[1] @ half[0],
        {
            "where is the residual connection?": mean[2] @ mean[1] @ mean[0],
            "the order is turned round: which layer acts last on the tokens?": half[0]
            @ half[1]
            @ half[2],
        },
        otherwise="follow a weight from the last layer down",
    )
