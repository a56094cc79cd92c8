# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of other libraries: signatures as theirs, values as PyTorch's SDPA and FlexAttention in float64 give them."""
import inspect

import pytest

torch = pytest.importorskip("torch")
import attnc  # noqa: E402
from attnc import ProblemError, TensorError, UnsupportedError  # noqa: E402
from attnc.torch import shims  # noqa: E402

B, H, G, D = 2, 4, 2, 16


def make(*shape, seed=0, dtype=torch.bfloat16):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(dtype)


def wide(q, k, v, bias=None, **options):
    """SDPA in float64 on [batch, heads, seqlen, dim]."""
    return torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=bias,
                                                            enable_gqa=True, **options)


def test_signatures():
    """An argument that the other library gets is noticed."""
    from torch.nn.attention import flex_attention, varlen
    for own, other in ((shims.varlen_attn, varlen.varlen_attn), (shims.flex_attention, flex_attention.flex_attention),
                       (shims.create_block_mask, flex_attention.create_block_mask)):
        assert list(inspect.signature(own).parameters) == list(inspect.signature(other).parameters)
    listed = torch.nn.functional.scaled_dot_product_attention.__doc__.split("->")[0]
    for name in inspect.signature(shims.scaled_dot_product_attention).parameters:
        assert name in listed
    assert listed.count(",") == 7


@pytest.mark.parametrize("sq, sk", [(20, 20), (7, 30)])
@pytest.mark.parametrize("options", [
    dict(), dict(causal=True), dict(window_size=(5, 3)), dict(causal=True, window_size=(4, -1)),
    dict(causal=True, softcap=2.0), dict(causal=True, alibi_slopes=True)])
def test_flash(sq, sk, options):
    q, k, v = make(B, sq, H, D), make(B, sk, G, D, seed=1), make(B, sk, G, D, seed=2)
    distance = torch.arange(sk) - torch.arange(sq)[:, None] - (sk - sq)
    left, right = options.get("window_size", (-1, -1))
    right = 0 if options.get("causal") else right
    visible = ((distance >= -left) | (left < 0)) & ((distance <= right) | (right < 0))
    s = q.double().transpose(1, 2) @ k.double().transpose(1, 2).repeat_interleave(2, 1).mT * D**-0.5
    if options.get("softcap"):
        s = 2 * torch.tanh(s / 2)
    if options.get("alibi_slopes"):
        options = {**options, "alibi_slopes": torch.tensor([0.5, 0.25, 0.1, 0.7])}
        s = s - options["alibi_slopes"].double().view(1, -1, 1, 1) * distance.abs()
    p = s.masked_fill(~visible, -float("inf")).softmax(-1).nan_to_num()
    expected = (p @ v.double().transpose(1, 2).repeat_interleave(2, 1)).transpose(1, 2)
    assert (shims.flash_attn_func(q, k, v, **options) - expected).abs().max() < 0.03
    cu_q, cu_k = torch.arange(B + 1, dtype=torch.int32) * sq, torch.arange(B + 1, dtype=torch.int32) * sk
    packed = [t.flatten(0, 1) for t in (q, k, v)]
    o = shims.flash_attn_varlen_func(*packed, cu_q, cu_k, sq, sk, **options)
    assert (o.unflatten(0, (B, sq)) - expected).abs().max() < 0.03
    if not {"softcap", "alibi_slopes", "causal"} & set(options):
        o = shims.varlen_attn(*packed, cu_q, cu_k, sq, sk, window_size=(left, right))
        assert (o.unflatten(0, (B, sq)) - expected).abs().max() < 0.03


@pytest.mark.parametrize("shape", [None, (20, 24), (B, 1, 20, 24), (1, H, 20, 24), (B, 1, 1, 24), (1, 24)])
def test_sdpa(shape):
    q, k, v = make(B, H, 20, D), make(B, G, 24, D, seed=1), make(B, G, 24, D, seed=2)
    bias = None if shape is None else make(*shape, seed=3)
    if bias is not None:
        bias[..., ::5] = torch.finfo(torch.bfloat16).min  # as frameworks hide keys
    o = shims.scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=True, scale=0.3)
    assert (o - wide(q, k, v, None if bias is None else bias.double(), scale=0.3)).abs().max() < 0.03
    causal = shims.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    assert (causal - wide(q, k, v, is_causal=True)).abs().max() < 0.03


@pytest.mark.parametrize("shape", [(B, 1, 1, 24), (1, 24), (B, 1, 20, 1)])
def test_sdpa_bool(shape):
    q, k, v = make(B, H, 20, D), make(B, G, 24, D, seed=1), make(B, G, 24, D, seed=2)
    visible = torch.rand(shape, generator=torch.Generator().manual_seed(1)) < 0.6
    o = shims.scaled_dot_product_attention(q, k, v, attn_mask=visible, enable_gqa=True)
    expected = wide(q, k, v, visible.expand(B, 1, 20, 24) if visible.dim() == 4 else visible).nan_to_num()
    assert (o - expected).abs().max() < 0.03


@pytest.mark.parametrize("sq, sk", [(20, 20), (7, 30), (30, 7)])
@pytest.mark.parametrize("corner", ["causal_upper_left", "causal_lower_right"])
@pytest.mark.filterwarnings("ignore:Lower right causal bias")
def test_sdpa_causal_bias(corner, sq, sk, monkeypatch):
    """Masks of torch.nn.attention.bias, which are never made a tensor; PyTorch has NaN in rows without keys."""
    from torch.nn.attention import bias
    q, k, v = make(B, H, sq, D), make(B, G, sk, D, seed=1), make(B, G, sk, D, seed=2)
    expected = wide(q, k, v, getattr(bias, corner)(sq, sk)).nan_to_num()
    monkeypatch.setattr(bias.CausalBias, "_materialize", None)
    def call(keys=sk, **options):
        mask = getattr(bias, corner)(sq, keys)
        return shims.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True, **options)
    assert (call() - expected).abs().max() < 0.03
    assert torch.equal(torch.compile(call, backend="aot_eager")(), call())
    with pytest.raises(TensorError, match=f"expected a causal bias of {sq} queries and {sk} keys as attn_mask, got: "
                                          f"{sq} and {sk + 1}"):
        call(sk + 1)
    with pytest.raises(UnsupportedError, match="exclude each other"):
        call(is_causal=True)


@pytest.mark.parametrize("attn_mask, message", [
    (torch.ones(25, dtype=torch.bool), r"to broadcast to \(2, 4, 20, 24\), got: \(25,\)"),
    (torch.ones(3, 1, 1, 24, dtype=torch.bool), r"got: \(3, 1, 1, 24\)"), (torch.ones(25), r"got: \(25,\)"),
    (torch.ones(1, 1, 1, 1, 24), r"got: \(1, 1, 1, 1, 24\)"),
    (torch.ones(24, dtype=torch.bool, device="meta"), "expected 'attn_mask' on cpu, got: meta"),
    (torch.ones(24, dtype=torch.int32), "of truth values or of float numbers as attn_mask, got: torch.int32"),
    ([True] * 24, "as attn_mask, got: list")])
def test_sdpa_errors(attn_mask, message):
    q, k, v = make(B, H, 20, D), make(B, G, 24, D, seed=1), make(B, G, 24, D, seed=2)
    with pytest.raises(TensorError, match=message):
        shims.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, enable_gqa=True)


def test_flex():
    from torch.nn.attention import flex_attention as theirs
    q, k, v = make(B, H, 40, D), make(B, H, 40, D, seed=1), make(B, H, 40, D, seed=2)
    slopes = torch.tensor([0.5, 0.25, 0.1, 0.7])
    window = 9

    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx - kv_idx < window)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score - slopes[h] * (q_idx - kv_idx)

    theirs_mask = theirs.create_block_mask(mask_mod, None, None, 40, 40, device="cpu")
    expected = theirs.flex_attention(q.double(), k.double(), v.double(), score_mod, theirs_mask)
    own_mask = shims.create_block_mask(mask_mod, None, None, 40, 40)
    assert attnc.equiv(own_mask.mask, attnc.window(9))
    for block_mask in (own_mask, theirs_mask):
        o, lse = shims.flex_attention(q, k, v, score_mod, block_mask, return_lse=True)
        assert (o - expected).abs().max() < 0.03 and lse.shape == (B, H, 40)
    with pytest.raises(TensorError, match="KV_LEN = 40, got: 41"):
        shims.flex_attention(q, k, v, None, shims.create_block_mask(mask_mod, None, None, 40, 41))
    with pytest.warns(UserWarning, match="BLOCK_M"):
        shims.flex_attention(q, k, v, kernel_options={"BLOCK_M": 64})


def test_refused():
    q, k, v = make(B, 20, H, D), make(B, 20, G, D), make(B, 20, G, D)
    cu = torch.tensor([0, 20, 40], dtype=torch.int32)
    for call, message in (
            (lambda: shims.flash_attn_func(q, k, v, return_attn_probs=True), "return_attn_probs"),
            (lambda: shims.flash_attn_func(q, k, v, alibi_slopes=torch.ones(B, H)), "one for each query head"),
            (lambda: shims.flash_attn_varlen_func(*(t.flatten(0, 1) for t in (q, k, v)), cu, cu, 20, 20,
                                                  block_table=cu), "pages"),
            (lambda: shims.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), enable_gqa=True,
                                                        attn_mask=torch.ones(20, 20, dtype=torch.bool)),
             "queries times keys"),
            (lambda: shims.flex_attention(*(t.transpose(1, 2) for t in (q, k, v)), enable_gqa=True,
                                          kernel_options={"backend": "FLASH"}), "one backend")):
        with pytest.raises(UnsupportedError, match=message):
            call()
    with pytest.raises(TypeError):
        shims.flash_attn_func(q, k, v, no_such_argument=1)
    with pytest.raises(ProblemError, match="expected a band's left to be an integer, got: 4.5"):
        shims.flash_attn_func(q, k, v, window_size=(4.5, 0))
    with pytest.raises(TensorError, match="expected 'alibi_slopes' on cpu, got: meta"):
        shims.flash_attn_func(q, k, v, alibi_slopes=torch.ones(H, device="meta"))
    with pytest.raises(TensorError, match="enable_gqa"):
        shims.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)))
