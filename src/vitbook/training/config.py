"""What is asked of a training run."""

from dataclasses import dataclass

from vitbook import require


@dataclass(frozen=True)
class TrainConfig:
    """What was asked of a training run. Exactly one of ``epochs`` and ``steps`` is given.

    Args:
        epochs: Passes over the images; what does not fill a batch is left out of an epoch.
        steps: Or the number of updates.
        batch_size: Images per update, over all processes together.
        learning_rate: The peak, reached after the warm-up.
        weight_decay: AdamW's, on weight matrices only, see :func:`parameter_groups`.
        warmup_steps: Updates until the peak is reached.
        label_smoothing: Fraction of the target spread over all classes, 0 ... 1.
        clip_norm: Largest norm of the gradient, or None.
        betas: AdamW's two decay rates.
        seed: Decides the order of the images, the augmentation and the dropout; the weights are
            drawn before, where the model is made.
        precision: "fp32", or "bf16" for matrix products in bfloat16.
        compile: Whether the model goes through ``torch.compile``.
    """

    epochs: int | None = None
    steps: int | None = None
    batch_size: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    warmup_steps: int = 100
    label_smoothing: float = 0.0
    clip_norm: float | None = 1.0
    betas: tuple[float, float] = (0.9, 0.999)
    seed: int = 0
    precision: str = "fp32"
    compile: bool = False

    def __post_init__(self) -> None:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError(
                f"give either epochs or steps, got epochs={self.epochs} and steps={self.steps}"
            )
        require.whole("epochs" if self.steps is None else "steps", self.steps or self.epochs)
        require.whole("batch_size", self.batch_size)
        require.real("learning_rate", self.learning_rate, above=0)
        if require.real("weight_decay", self.weight_decay) < 0:
            raise ValueError(f"weight_decay must not be negative, got {self.weight_decay}")
        require.whole("warmup_steps", self.warmup_steps, at_least=0)
        require.fraction("label_smoothing", self.label_smoothing)
        if self.clip_norm is not None:
            require.real("clip_norm", self.clip_norm, above=0)
        if not isinstance(self.betas, (tuple, list)) or len(self.betas) != 2:
            raise ValueError(f"betas must be two numbers, got {self.betas!r}")
        object.__setattr__(self, "betas", tuple(require.fraction("betas", b) for b in self.betas))
        if require.whole("seed", self.seed, at_least=0) >= 2**64:
            raise ValueError(f"seed must be below 2**64, got {self.seed}")
        require.one_of("precision", self.precision, ("fp32", "bf16"))
        require.truth("compile", self.compile)

    def total_steps(self, num_images: int) -> int:
        """How many updates the run makes with that many images."""
        return self.steps or (self.epochs or 0) * (num_images // self.batch_size)
