# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads of XLA flush denormals to zero: kernels that they launch compute with them."""
import jax.numpy as jnp
import numpy as np
import pytest

import attnc
from attnc.jax import attention


def test_values_below_the_least_normal_number_of_float16():
    q = jnp.zeros((1, 8, 1, 16), jnp.float16)
    o = attention(q, q, jnp.full_like(q, 2.0**-20), mask=attnc.full())
    np.testing.assert_array_equal(np.asarray(o), np.float16(2.0**-20))


@pytest.mark.parametrize("mask", [attnc.full(), attnc.causal()])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_a_scale_of_0_is_the_mean_of_visible_values(mask, dtype):
    q = jnp.ones((1, 4, 1, 8), dtype)
    v = jnp.arange(4, dtype=dtype)[None, :, None, None] * q
    o = attention(q, q, v, mask=mask, scale=0.0)
    means = [1.5] * 4 if mask == attnc.full() else [0, 0.5, 1, 1.5]
    np.testing.assert_array_equal(np.asarray(o[0, :, 0, 0], np.float64), means)
