"""vitbook: the package behind the course *Attention, Patch by Patch*.

``from vitbook import vit, attention_maps``: every public name of the package can be had from here.
A name is looked up when it is asked for, so that ``import vitbook`` takes no time. The page on the
package lists them by module.
"""

from importlib import import_module
from importlib.metadata import version
from typing import Any

__version__ = version("vitbook")

_NAMES = {
    "layers.attention": "scaled_dot_product_attention causal_mask padding_mask "
    "MultiHeadSelfAttention MultiHeadCrossAttention",
    "layers.patches": "patchify unpatchify PatchEmbedding",
    "layers.positions": "sincos_1d sincos_2d rotate_pairs resample_positions make_positions "
    "LearnedPositions FixedPositions RotaryPositions",
    "layers.encoder": "MLP EncoderBlock Encoder",
    "layers.residual": "LayerScale DropPath",
    "layers.init": "init_weights",
    "layers.stems": "NormedPatchEmbedding ConvStem",
    "layers.token_mixing": "TokenMixing",
    "layers.ablations": "UniformAttention NoMixing",
    "layers.efficient": "WindowAttention LinearAttention window_mask",
    "layers.token_merging": "ShrinkingEncoder merge_tokens prune_tokens",
    "models.classifier": "TokenClassifier",
    "models.vit": "VisionTransformer VIT_VARIANTS vit",
    "models.mlp_mixer": "MlpMixer MIXER_VARIANTS mlp_mixer",
    "models.conv_mixer": "ConvMixer ConvMixerBlock CONV_MIXER_VARIANTS conv_mixer",
    "models.hybrid": "Hybrid",
    "models.small_cnn": "SmallCNN",
    "models.weights": "TIMM_NAMES TORCHVISION_NAMES from_timm from_torchvision from_transformers "
    "load_weights read_weights save_weights",
    "models.published": "rebuild",
    "training": "Evaluation RunFolder TrainConfig epoch_order evaluate examine parameter_groups "
    "train update warmup_cosine",
    "models.transfer": "adapt adapt_channels fold_normalization head_inputs",
    "models.distillation": "WithTeacher distillation_loss",
    "inspection": "Audit attention_hits attention_maps attention_rollout audit "
    "class_token_attention find_num_prefix gradient_drop image_features mean_attention_distance "
    "occlusion query_distance rank_correlation record_attention region_attention token_norms",
    "models.cost": "count_multiplies count_parameters",
    "data": "STATISTICS DataError ImageSet MatchingPairs PlacedObjects Pointer augmentation "
    "load_digits load_folder load_torchvision matching_pairs normalize place_on_canvas pointer "
    "recall random_flip random_shift stratified_split",
    "comparison.candidate": "mixer_model",
    "comparison.layer": "require_mixer",
    "comparison.recall_task": "RECALL_GUESS PatchAnswers fit_recall recall_images",
    "comparison.verdict": "difference_in_words",
    "explorer": "AttentionExplorer attention_explorer",
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'vitbook' has no attribute {name!r}")
    return getattr(import_module(f"vitbook.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return ["__version__", *__all__]
