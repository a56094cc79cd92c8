# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc.jax.dot_product_attention beside jax.nn.dot_product_attention."""
import inspect

import pytest
from jax_cases import close, jax, jnp, make, qkv, total, wide, H, S
import attnc.jax as aj
from attnc import ProblemError, TensorError, UnsupportedError


def test_dot_product_attention():
    theirs, own = (inspect.signature(f).parameters.values()
                   for f in (jax.nn.dot_product_attention, aj.dot_product_attention))
    assert [p.replace(annotation=inspect.Parameter.empty) for p in theirs] == list(own)
    q, k, v = qkv()
    lengths = jnp.array([20, S], jnp.int32)
    rows = (jnp.arange(S) < lengths[:, None])[:, None, None]
    bias = make(1, H, S, S, dtype=jnp.float32)
    for options in (dict(is_causal=True), dict(local_window_size=(4, 2)), dict(local_window_size=3, scale=0.5),
                    dict(key_value_seq_lengths=lengths), dict(query_seq_lengths=lengths, key_value_seq_lengths=lengths),
                    dict(bias=bias), dict(mask=rows), dict(mask=rows, bias=bias[:, :, :1], is_causal=True)):
        own, theirs = (f(q, k, v, **options) for f in (aj.dot_product_attention, jax.nn.dot_product_attention))
        close(own, wide(theirs))
        close(aj.dot_product_attention(q[0], k[0], v[0], **{n: x[:1] if n.endswith("lengths") or n == "mask" else x
                                                            for n, x in options.items()}), wide(own[0]))
    own, theirs = (f(q, k, v, is_causal=True, return_residual=True)[1]
                   for f in (aj.dot_product_attention, jax.nn.dot_product_attention))
    close(own, wide(theirs))
    learned = jax.grad(lambda b: total(aj.dot_product_attention)(q, k, v, b))(bias)
    close(learned, wide(jax.grad(lambda b: total(jax.nn.dot_product_attention)(q, k, v, b))(bias)))
    for options, message in ((dict(implementation="xla"), "implementation"),
                             (dict(mask=jnp.ones((S, S), bool)), "queries times keys")):
        with pytest.raises(UnsupportedError, match=message):
            aj.dot_product_attention(q, k, v, **options)
    for options, kind, message in (
            (dict(mask=jnp.ones((1, S + 1), bool)), TensorError,
             r"mask to broadcast to \(2, 4, 37, 37\), got: \(1, 38\)"),
            (dict(query_seq_lengths=lengths[:1]), TensorError, r"query_seq_lengths of shape \[2\], got: \(1,\)"),
            (dict(key_value_seq_lengths=lengths * 1.0), TensorError,
             "'key_value_seq_lengths' to be int32, got: float32"),
            (dict(local_window_size=2.5), ProblemError, "a band's left to be an integer, got: 2.5"),
            (dict(local_window_size=(3, 2**31)), ProblemError,
             r"a band's right within \[-2\^30, 2\^30\], got: 2147483648")):
        with pytest.raises(kind, match=message):
            aj.dot_product_attention(q, k, v, **options)
