# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the language of `#attn.predicate` has. What it gets is switched on here, and nowhere else."""

HAS_BITS = False  # `&`, `|`, `^`, `<<` and `>>` of integers; else they are of one side, and evaluated ahead
# `name[h]`, of arrays [heads]; else `name[h, q]`, of arrays [batch, heads, rows]. These make intervals of rows, for which
# kernels list the tiles to visit; a predicate over name[h] visits all tiles that the rest of the mask leaves.
HAS_HEAD_ENTRIES = False
