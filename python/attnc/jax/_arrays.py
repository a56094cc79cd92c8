# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of a call: what they have to be, and what is known of their contents."""
import jax
import jax.numpy as jnp
import numpy as np

from ..errors import TensorError


@jax.tree_util.register_static
class Needed(tuple):
    """Names of arrays whose gradients are wanted, among what is kept for the backward pass."""


def is_array(value):
    return isinstance(value, (jax.Array, np.ndarray))


def platform_of(array):
    """Where an array is: a traced one, or numpy's, where JAX computes by default."""
    if isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer):
        return next(iter(array.devices())).platform
    device = jax.config.jax_default_device or jax.devices()[0]
    return device if isinstance(device, str) else device.platform


def is_at_hand(array):
    """Can contents be read, without waiting for a GPU?"""
    if isinstance(array, jax.Array):
        return not isinstance(array, jax.core.Tracer) and array.is_fully_addressable and platform_of(array) == "cpu"
    return isinstance(array, np.ndarray)


def int32(what, array):
    """Integers as int32, whose values are checked where they are at hand."""
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TensorError(f"expected {what} to be int32, got: {array.dtype}")
    if np.iinfo(array.dtype).max > 2**31 - 1 and array.size and is_at_hand(array):
        values = np.asarray(array)
        low, high = int(values.min()), int(values.max())
        if low < -2**31 or high > 2**31 - 1:
            raise TensorError(f"expected integers of 32 bits in {what}, got: from {low} to {high}")
    return jnp.asarray(array).astype(jnp.int32)
