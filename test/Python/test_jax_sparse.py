# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""native_sparse_attention(), moba_attention() and block_max_attention() of JAX on the CPU: values of the PyTorch
functions, which have tests against float64, gradients against central differences, jit, and what is refused."""
import attnc
import attnc.jax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from attnc.jax import block_max_attention, moba_attention, native_sparse_attention

OPTIONS = dict(length=8, stride=4, block=8, count=4, first=1, local=2, window=7, rows=8)


def made(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape, np.float32))


def along(loss, arrays, direction, eps=1e-2):
    """The derivative of loss along a direction, by central differences."""
    moved = lambda sign: [x + sign * eps * d for x, d in zip(arrays, direction)]
    return (loss(*moved(1)) - loss(*moved(-1))) / (2 * eps)


@pytest.mark.parametrize("layout", ["thd", "bshd", "bhsd"])
@pytest.mark.parametrize("own", [False, True])
def test_gradients(layout, own):
    """With lists that a small step does not change: all blocks are selected."""
    lead = {"thd": (50,), "bshd": (2, 25), "bhsd": (2,)}[layout]
    shape = lambda h: (2, h, 25, 16) if layout == "bhsd" else (*lead, h, 16)
    q, gates = made(*shape(4)), made(*((50, 4, 3) if layout == "thd" else (2, 25, 4, 3)), seed=1)
    keys = [made(*shape(2), seed=2 + i) for i in range(6 if own else 2)]
    offsets = dict(cu_seqlens=jnp.array([0, 1, 20, 50])) if layout == "thd" else {}
    weights = made(*shape(4), seed=9)

    @jax.jit
    def loss(q, gates, *keys):
        k, v = (keys[:3], keys[3:]) if own else keys
        o = native_sparse_attention(q, k, v, gates, layout=layout, **offsets, **dict(OPTIONS, count=8))
        return (o * weights).sum()

    arrays = [q, gates, *keys]
    grads = jax.grad(loss, argnums=tuple(range(len(arrays))))(*arrays)
    for seed in range(3):
        direction = [made(*x.shape, seed=20 + 10 * seed + i) / x.size**0.5 for i, x in enumerate(arrays)]
        slope = sum((g * d).sum() for g, d in zip(grads, direction))
        np.testing.assert_allclose(slope, along(loss, arrays, direction), rtol=2e-2, atol=2e-2)


def test_recompute():
    """The bits of a backward pass that keeps what the forward one computed."""
    q, k, v = made(2, 25, 4, 16), made(2, 25, 2, 16, seed=1), made(2, 25, 2, 16, seed=2)
    gates = made(2, 25, 4, 3, seed=3)
    grads = lambda recompute: jax.jit(jax.value_and_grad(
        lambda *x: (native_sparse_attention(*x, recompute=recompute, **OPTIONS)**2).sum(), argnums=(0, 1, 2, 3)))(
            q, k, v, gates)
    for x, y in zip(jax.tree.leaves(grads(True)), jax.tree.leaves(grads(False))):
        assert jnp.array_equal(x, y)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("layout", ["thd", "bshd"])
def test_narrow_gates(dtype, layout):
    """Gates of q's dtype give the bits of the same gates in float32, and gradients rounded to that dtype."""
    lead = (50, ) if layout == "thd" else (2, 25)
    offsets = dict(cu_seqlens=jnp.array([0, 1, 20, 50])) if layout == "thd" else {}
    q, k, v = (made(*lead, heads, 16, seed=i).astype(dtype) for i, heads in enumerate((3, 1, 1)))
    gates, weights = made(*lead, 3, 3, seed=3).astype(dtype), made(*lead, 3, 16, seed=9)

    @jax.jit
    def call(q, k, v, gates):
        o = native_sparse_attention(q, k, v, gates, layout=layout, **offsets, **OPTIONS)
        return (o.astype(jnp.float32) * weights).sum(), o

    step = jax.value_and_grad(call, argnums=(0, 1, 2, 3), has_aux=True)
    (_, o), (*grads, dgates) = step(q, k, v, gates)
    (_, wanted_o), (*wanted, wide_dgates) = step(q, k, v, gates.astype(jnp.float32))
    assert jnp.array_equal(o, wanted_o) and all(map(jnp.array_equal, grads, wanted))
    assert dgates.dtype == dtype and jnp.array_equal(dgates, wide_dgates.astype(dtype)) and dgates.any()


@pytest.mark.parametrize("call, index", [(moba_attention, ()), (block_max_attention, (2, 1))])
@pytest.mark.parametrize("layout", ["thd", "bshd"])
def test_gradients_of_selected(call, index, layout):
    lead = {"thd": (50,), "bshd": (2, 25)}[layout]
    offsets = dict(cu_seqlens=jnp.array([0, 1, 20, 50])) if layout == "thd" else {}
    arrays = [made(*lead, 4, 16), made(*lead, 2, 16, seed=1), made(*lead, 2, 24, seed=2)]
    given = [made(*lead, h, 8, seed=3 + i) for i, h in enumerate(index)]
    weights = made(*lead, 4, 24, seed=9)

    @jax.jit
    def loss(*x):
        return (call(*x, layout=layout, block=8, count=8, rows=8, **offsets) * weights).sum()

    grads = jax.grad(loss, argnums=tuple(range(len(arrays + given))))(*arrays, *given)
    assert all((g == 0).all() for g in grads[3:])
    for seed in range(3):
        direction = [made(*x.shape, seed=20 + 10 * seed + i) / x.size**0.5 for i, x in enumerate(arrays)]
        slope = sum((g * d).sum() for g, d in zip(grads, direction))
        of_three = lambda *x: loss(*x, *given)
        np.testing.assert_allclose(slope, along(of_three, arrays, direction), rtol=2e-2, atol=2e-2)


def test_selected_values_of_torch():
    torch = pytest.importorskip("torch")
    import attnc.torch
    arrays = [made(1, 61, 6, 16), made(1, 61, 2, 16, seed=1), made(1, 61, 2, 24, seed=2)]
    index = [made(1, 61, 2, 8, seed=3), made(1, 61, 1, 8, seed=4)]
    for name, given in (("moba_attention", arrays), ("block_max_attention", arrays + index)):
        theirs = getattr(attnc.torch, name)(*(torch.tensor(np.asarray(x)) for x in given), block=8, count=3, rows=8)
        ours = getattr(attnc.jax, name)(*given, block=8, count=3, rows=8)
        assert np.array_equal(ours, theirs.numpy())


def test_values_of_torch():
    torch = pytest.importorskip("torch")
    from attnc.torch import native_sparse_attention as of_torch
    q, k, v = made(1, 61, 6, 16), made(1, 61, 2, 16, seed=1), made(1, 61, 2, 16, seed=2)
    gates = made(1, 61, 6, 3, seed=3)
    theirs = of_torch(*(torch.tensor(np.asarray(x)) for x in (q, k, v, gates)), **OPTIONS)
    assert np.array_equal(native_sparse_attention(q, k, v, gates, **OPTIONS), theirs.numpy())
    theirs = of_torch(*(torch.tensor(np.asarray(x)) for x in (q, k, v)), **OPTIONS)
    assert np.array_equal(native_sparse_attention(q, k, v, **OPTIONS), theirs.numpy())


def test_refused():
    q, k, v = made(1, 40, 4, 16), made(1, 40, 2, 16), made(1, 40, 2, 16)
    with pytest.raises(attnc.ProblemError, match="with room for both"):
        native_sparse_attention(q, k, v, **dict(OPTIONS, count=2))
    with pytest.raises(attnc.TensorError, match="one tensor for each of k and v or three"):
        native_sparse_attention(q, [k, k], [v, v], **OPTIONS)
    with pytest.raises(attnc.TensorError, match="cu_seqlens with the layout 'thd'"):
        native_sparse_attention(q[0], k[0], v[0], layout="thd", **OPTIONS)
    loss = lambda q: native_sparse_attention(q, k, v, **OPTIONS).sum()
    with pytest.raises(attnc.UnsupportedError, match="second derivatives"):
        jax.grad(lambda q: jax.grad(loss)(q).sum())(q)
