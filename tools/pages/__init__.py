"""The pages as they are written, in MyST: read as blocks, and their inline syntax."""
