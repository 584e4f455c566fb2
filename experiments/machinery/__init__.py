"""Runs an experiment, writes its record, and tells later whether the record still holds."""
