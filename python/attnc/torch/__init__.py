# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc for PyTorch 2.10 and later: attention on tensors, with gradients, torch.compile, vmap, autocast and CUDA graphs."""
from ._attention import attention
from .module import Attention

__all__ = ["Attention", "attention"]
