"""The interactive attention figure, as the output of a notebook cell."""

from vitbook.explorer.figure import AttentionExplorer, attention_explorer

__all__ = ["AttentionExplorer", "attention_explorer"]
