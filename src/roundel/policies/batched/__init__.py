"""Batched policies: one paper, one file; a generator that reads like its pseudo-code."""
