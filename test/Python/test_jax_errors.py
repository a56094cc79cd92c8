# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of attnc.jax, while tracing, in XLA's compilation and at run time."""
import pytest
from jax_cases import attention, jax, jnp, make, np, qkv, B, D, G, H, S
import attnc
import attnc.jax as aj
from attnc import ProblemError, TensorError, UnsupportedError

ONES = aj.SegmentIds(jnp.ones((B, S), jnp.int32))


@pytest.mark.parametrize("change, kind, message", [
    (dict(q="q"), TensorError, "expected an array as 'q', got: str"),
    (dict(q=np.zeros((B, S, H, D))), TensorError,
     "expected 'q' to be bfloat16 or float16 (on the CPU also float32), got: float64"),
    (dict(q=make(B, S, 3, D)), TensorError, "expected heads of q in multiples of those of k, got: 3 and 2"),
    (dict(q=make(S, H, D)), TensorError, "expected 'q' of 4 dimensions in the layout 'bshd'"),
    (dict(k=make(B, S, G, D + 8)), TensorError, "`k`"),
    (dict(k=make(B, S - 1, G, D)), TensorError, "`v`"),
    (dict(v=make(B, S, G, D + 1)), ProblemError, "dim_v to be a multiple of 8"),
    (dict(layout="bsdh"), ProblemError, "expected a layout of 'bshd'"),
    (dict(mask=attnc.document()), TensorError, "got none for: segment_ids"),
    (dict(arrays={"ids": jnp.zeros(1)}), TensorError, "got also: ids"),
    (dict(mask=attnc.document("ids"), arrays={"ids": jnp.zeros((B, S))}), TensorError, "to be int32, got: float32"),
    (dict(mask=attnc.document("ids"), arrays={"ids": jnp.zeros((B, S + 1), jnp.int32)}), TensorError,
     "expected shape [2, 37] for `ids` of queries, got: [2, 38]"),
    (dict(segment_ids=ONES, mask=attnc.prefix("n"), arrays={"n": jnp.ones(B, jnp.int32)}), UnsupportedError,
     "no array `n`"),
    (dict(segment_ids=ONES, cu_seqlens_q=jnp.array([0, S])), TensorError, "or segment_ids"),
    (dict(segment_ids=aj.SegmentIds(jnp.ones((B, S)))), TensorError, "expected segment_ids.q to be int32"),
    (dict(scale="x"), ProblemError, "expected scale to be a number"),
    (dict(segment_ids=aj.SegmentIds(jnp.ones((B, S + 1), jnp.int32))), TensorError, "segment_ids.q of shape (2, 37)"),
    (dict(segment_ids=ONES, layout="bhsd"), UnsupportedError, "segment_ids in the layouts"),
    (dict(segment_ids=aj.SegmentIds(ONES.q, None, ONES.q), mask=attnc.sink(2)), UnsupportedError, "by positions"),
    (dict(segment_ids=aj.SegmentIds(jnp.ones((B, 3000), jnp.int32))), ProblemError, "expected max_segments"),
    (dict(dropout=1.5, seed=jnp.arange(4)), ProblemError, "probability"),
])
def test_errors(change, kind, message):
    options = {**dict(zip("qkv", qkv())), "mask": attnc.causal(), **change}
    with pytest.raises(kind) as error:
        aj.attention(**options)
    assert message in str(error.value), str(error.value)


def test_errors_of_xla():
    """A text without a kernel fails in XLA's compilation, bad contents where the program runs; the process goes on."""
    from attnc.jax import _ops
    text = "attn.problem @attention mask(#attn.causal) layout(bshd) heads(4) dims(17) dtype(bf16)"
    result = [jax.ShapeDtypeStruct((1,), jnp.uint8)] * 3
    call = jax.jit(lambda x: jax.ffi.ffi_call(_ops.TARGET, result)(x, problem=text, name="attention"))
    lowered = call.lower(jnp.zeros(1))
    with pytest.raises(jax.errors.JaxRuntimeError, match="(?s)attnc.ProblemError.*multiple of 8"):
        lowered.compile()
    q, k, v = (t[0] for t in qkv(1))
    for cu, message in (([0, 9, 4, S], "ascend"), ([0, S + 9], "at most")):
        with pytest.raises(jax.errors.JaxRuntimeError, match="attnc.TensorError.*cu_seqlens"):
            jax.block_until_ready(attention(q, k, v, layout="thd", cu_seqlens_q=jnp.array(cu, jnp.int32)))
    jax.block_until_ready(attention(q, k, v, layout="thd", cu_seqlens_q=jnp.array([0, S], jnp.int32)))
