# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""float32 on the CPU: values and gradients within 1e-5 of float64 formulas, finite differences, refusals of GPUs."""
import functools

import pytest

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

import attnc  # noqa: E402
import attnc.jax as aj  # noqa: E402
import attnc.torch as at  # noqa: E402
from attnc import TensorError  # noqa: E402
from attnc.jax import _attention  # noqa: E402

B, S, H, G, D, E = 2, 37, 4, 2, 24, 40
CAUSAL = torch.ones(S, S, dtype=torch.bool).tril()
NAN = float("nan")


def make(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)), dtype=dtype)


def qkv(seqlen=S, batch=B):
    return [make(batch, seqlen, heads, dim, seed=i) for i, (heads, dim) in enumerate(((H, D), (G, D), (G, E)))]


def dense(q, k, v, visible=CAUSAL, score=lambda s: s, sink=None):
    """Attention of [batch, seqlen, heads, dim] in the dtype of q; rows that see nothing are 0."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    s = score(q @ k.mT * q.shape[-1]**-0.5).masked_fill(~visible, -float("inf"))
    if sink is not None:
        s = torch.cat([s, sink.view(1, -1, 1, 1).expand(*s.shape[:3], 1)], -1)
    p = torch.where(s.isneginf().all(-1, keepdim=True), 0, (s - s.amax(-1, keepdim=True).clamp(min=-1e30)).exp())
    p = p / p.sum(-1, keepdim=True).clamp(min=1e-30)
    return (p[..., :k.shape[2]] @ v).transpose(1, 2)


def check(call, reference, inputs, tolerance=1e-5):
    """The result and gradients against those of the formula in float64."""
    own = [t.detach().clone().requires_grad_() for t in inputs]
    wide = [t.detach().double().requires_grad_() for t in inputs]
    o, expected = call(*own), reference(*wide)
    assert o.dtype == torch.float32 and o.shape == expected.shape
    do = make(*o.shape, seed=99)
    o.backward(do)
    expected.backward(do.double())
    for a, b in [(o.detach(), expected.detach()), *((a.grad, b.grad) for a, b in zip(own, wide))]:
        assert a.dtype == torch.float32
        assert (a - b).abs().max() <= tolerance * max(1, float(b.abs().max()))


@pytest.mark.parametrize("order, layout", [((0, 1, 2, 3), "bshd"), ((1, 0, 2, 3), "sbhd"), ((0, 2, 1, 3), "bhsd")])
def test_layouts(order, layout):
    inverse = [order.index(i) for i in range(4)]
    check(lambda *t: at.attention(*(x.permute(order) for x in t), mask=attnc.causal(), layout=layout).permute(inverse),
          dense, qkv())


@pytest.mark.parametrize("seqlen", [1, 64, 200])
def test_lengths(seqlen):
    visible = torch.ones(seqlen, seqlen, dtype=torch.bool)
    check(lambda *t: at.attention(*t, mask=attnc.full()), functools.partial(dense, visible=visible), qkv(seqlen))


def test_rows_without_keys():
    """A key behind a band is not read, NaN or not."""
    q, k, v = qkv()
    k[:, -1], v[:, -1] = NAN, NAN
    visible = CAUSAL.tril(-20)
    o = at.attention(q, k, v, mask=attnc.mask(lambda b, h, q, k: k + 20 <= q))
    k[:, -1], v[:, -1] = 0, 0
    expected = dense(q.double(), k.double(), v.double(), visible)
    assert (o - expected).abs().max() < 1e-5 and o[:, :20].eq(0).all()


def test_scores_and_sinks():
    bias, sink = make(H, S, S, seed=5), make(H, seed=6)
    score = [attnc.softcap(5.0), attnc.bias("pairs", "hqk")]
    check(lambda q, k, v, bias, sink: at.attention(q, k, v, mask=attnc.causal(), score=score, sink=sink,
                                                   arrays={"pairs": bias}),
          lambda q, k, v, bias, sink: dense(q, k, v, score=lambda s: 5 * (s / 5).tanh() + bias, sink=sink),
          [*qkv(), bias, sink])


@pytest.mark.parametrize("hint", [None, 9])
def test_packed(hint):
    """Tiles and short sequences, one of them empty; what is behind the last is padding."""
    lengths = [9, 0, 1, 7] if hint else [70, 0, 1, 130]
    cu = torch.tensor([0, *lengths]).cumsum(0)
    total = int(cu[-1])
    q, k, v = (torch.cat([t[0], torch.full_like(t[0][:3], NAN)]) for t in qkv(total, 1))
    o = at.attention(q, k, v, mask=attnc.causal(), layout="thd", cu_seqlens_q=cu, max_seqlen=hint)
    assert o[total:].eq(0).all()

    def call(q, k, v):
        return at.attention(q, k, v, mask=attnc.causal(), layout="thd", cu_seqlens_q=cu, max_seqlen=hint)

    def formula(q, k, v):
        parts = [dense(*(t[None, a:b] for t in (q, k, v)), torch.ones(b - a, b - a, dtype=torch.bool).tril())[0]
                 for a, b in zip(cu[:-1], cu[1:]) if b > a]
        return torch.cat(parts)

    check(call, formula, [t[:total] for t in (q, k, v)])


def test_dropout():
    """The pairs that bfloat16 drops, too: of a v of ones, what is kept of each row."""
    q, k, v = qkv()
    seed = torch.arange(4, dtype=torch.int32)
    kept = [at.attention(q.to(t), k.to(t), torch.ones_like(v, dtype=t), mask=attnc.full(), dropout=0.25, seed=seed)
            for t in (torch.float32, torch.bfloat16)]
    assert kept[0].std() > 0.05 and (kept[0] - kept[1]).abs().max() < 0.03
    again = at.attention(q, k, torch.ones_like(v), mask=attnc.full(), dropout=0.25, seed=seed)
    assert torch.equal(again, kept[0])


def test_strides():
    """float32 needs no strides in multiples of 8 and no address aligned to 16 bytes."""
    q, k, v = qkv()
    odd = [torch.full((B, S, t.shape[2], t.shape[3] + 3), NAN)[..., 1:-2].copy_(t) for t in (q, k, v)]
    assert torch.equal(at.attention(*odd, mask=attnc.causal()), at.attention(q, k, v, mask=attnc.causal()))


@pytest.mark.parametrize("options", [dict(mask=attnc.causal()), dict(mask=attnc.window(4), score=[attnc.softcap(2.0)]),
                                     dict(mask=attnc.causal(), sink=0.5)])
def test_gradcheck(options):
    inputs = [make(1, 7, heads, 8, seed=i).requires_grad_() for i, heads in enumerate((2, 1, 1))]
    with pytest.warns(UserWarning, match="not a double precision"):
        assert torch.autograd.gradcheck(functools.partial(at.attention, **options), inputs, eps=1e-2, atol=1e-2)


def test_gpus_refuse():
    message = ("expected 'q' to be bfloat16 or float16 (on the CPU also float32), got: torch.float32 on cuda:0 "
               "(torch.autocast casts float32)")
    with FakeTensorMode():
        tensors = [torch.empty(B, S, H, D, device="cuda") for _ in range(3)]
        with pytest.raises(TensorError) as error:
            at.attention(*tensors, mask=attnc.causal())
    assert str(error.value) == message


def test_problem():
    problem = attnc.Problem(attnc.causal(), heads=2, dims=16, dtype="float32")
    found = problem.describe()
    assert [found["dtype"], *(t["dtype"] for t in found["tensors"])] == ["f32"] * 6
    cpu, ampere, hopper = problem.supported()
    assert cpu.supported and not ampere.supported and not hopper.supported
    assert "expected dtype bf16 or f16 for target `sm_80`" in ampere.reason and "dtype(bf16)" in ampere.nearest


# ---- JAX ----

def as_jax(tensors):
    return [jnp.asarray(t.numpy()) for t in tensors]


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_jax(transform):
    inputs, do = qkv(), make(B, S, H, E, seed=9)
    wide = [t.double().requires_grad_() for t in inputs]
    expected = dense(*wide)
    expected.backward(do.double())
    o, pull = jax.vjp(transform(functools.partial(aj.attention, mask=attnc.causal())), *as_jax(inputs))
    for found, wanted in zip([o, *pull(jnp.asarray(do.numpy()))], [expected, *(t.grad for t in wide)]):
        assert found.dtype == jnp.float32
        assert np.abs(np.asarray(found, np.float64) - wanted.detach().numpy()).max() < 1e-5


def test_jax_on_gpus(monkeypatch):
    """Arrays that are traced are where JAX computes by default."""
    inputs = as_jax(qkv())
    call = functools.partial(aj.attention, mask=attnc.causal())
    monkeypatch.setattr(_attention, "platform_of", lambda array: "gpu")
    for run in (call, jax.jit(call)):
        with pytest.raises(TensorError) as error:
            run(*inputs)
        assert str(error.value) == ("expected 'q' to be bfloat16 or float16 (on the CPU also float32), got: float32 on "
                                    "gpu")
