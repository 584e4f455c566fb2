"""What "cut the arrow" reads: the recorded model of the matching pairs, images, and the glyphs."""

from website.live.pack import model, packed

SEED, COUNT = 2024, 400  # the images of the page that opens with this figure
# Image -> the fewest arrows (layer, head, query, key) known to turn its answer round, found by
# always cutting the arrow that brings the lead nearest to the turn; for the last image four such
# steps found none.
PICTURES: dict[int, list[tuple[int, int, int, int]]] = {
    96: [(0, 2, 13, 11), (0, 0, 11, 13), (0, 3, 13, 11)],
    0: [(0, 2, 11, 13), (0, 3, 13, 11)],
    33: [(0, 2, 11, 5)],
    65: [(0, 2, 7, 13), (0, 3, 13, 7)],
    108: [(0, 3, 6, 13), (0, 0, 13, 6), (0, 2, 6, 13), (0, 3, 8, 13)],
    1: [],
}


def data() -> dict:
    """Images are float32, as Python has them; patches and kinds are those of their two glyphs."""
    import torch

    from vitbook.book.records import load_record
    from vitbook.data import matching_pairs
    from vitbook.data.glyphs import GLYPH_NAMES, glyphs

    record = load_record("matching_pairs")
    settings = record.settings["model"]
    pairs = matching_pairs(COUNT, seed=SEED)
    where = pairs.glyph_patches(settings["patch_size"]).int().argmax(dim=-1)  # (n, 2)
    (offset,) = set((pairs.boxes[..., :2] % settings["patch_size"]).flatten().tolist())
    chosen = torch.tensor(list(PICTURES))
    return {
        "model": model(settings, record.weights("attention")),
        "images": packed(pairs.images[chosen, 0].numpy(), "f32"),
        "pictures": [
            {"patches": where[i].tolist(), "kinds": pairs.kinds[i].tolist(), "cuts": cuts}
            for i, cuts in PICTURES.items()
        ],
        "glyphs": packed(glyphs().numpy(), "u8"),
        "names": list(GLYPH_NAMES),
        "offset": offset,
    }
