"""Sequential policies: one paper, one file; compiled choose and learn kernels."""
