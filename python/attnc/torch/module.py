# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attention() as a module."""
import torch

from ._attention import attention


class Attention(torch.nn.Module):
    """Calls attnc.torch.attention with fixed options; it has no parameters and no state.

    options: keyword arguments of attention(), as mask, layout, scale, score, dropout. forward() takes q, k, v and the
    rest, as cu_seqlens_q and arrays. Dropout is off in evaluation.
    """

    def __init__(self, mask, **options):
        super().__init__()
        self.mask, self.options = mask, options

    def forward(self, q, k, v, **options):
        options = {**self.options, **options}
        if not self.training:
            options.pop("dropout", None)
        return attention(q, k, v, mask=self.mask, **options)

    def extra_repr(self):
        return ", ".join([f"mask={self.mask}", *(f"{name}={value}" for name, value in self.options.items())])
