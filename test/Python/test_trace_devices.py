# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of traced functions are where the tensors of a call are, not on torch's default device; against float64."""
import attnc
import attnc.torch as at
import pytest
from trace_kernels import inputs, reference, torch

SIZES = (2, 2, 21, 21)
LIMIT, OFFSETS, SLOPES = torch.tensor([3, 9]), torch.tensor([0, 4, 13, 21]), torch.tensor([0.1, 0.5])
IDS = torch.arange(21).div(5, rounding_mode="floor").expand(2, 21)
MORE = attnc.array([2, 5])
OF_MORE = torch.tensor([2, 5])


def constant(b, h, q, k):
    return (q >= k) & (q - k < torch.tensor(6))


MASKS = {
    "captured tensor": lambda b, h, q, k: (q >= k) & (q - k < LIMIT[b]),
    "captured tensor of two axes": lambda b, h, q, k: IDS[b, q] == IDS[b, k],
    "real numbers": lambda b, h, q, k: torch.log(q + 1.0) * 3.1 >= k * 0.7,
    "function of torch": lambda b, h, q, k: torch.searchsorted(OFFSETS, q, right=True) ==
    torch.searchsorted(OFFSETS, k, right=True),
    "function that makes a tensor": lambda b, h, q, k: torch.as_tensor(q * q) % 7 >= k % 5,
    "numbers": lambda b, h, q, k: (q * q % 7 < 3) | (q >= k),
    "constant": constant,
}


@pytest.fixture
def on_meta():
    """A default device whose tensors have no contents: what lands on it is noticed."""
    torch.set_default_device("meta")
    yield
    torch.set_default_device(None)


def by_default(function, *arguments):
    """What a function returns without a default device."""
    with torch.device("cpu"):
        return function(*arguments)


def modified(s, b, h, q, k):
    return s - SLOPES[h] * (q - k) + OF_MORE[b] * 0.1 + torch.log(q + 1.0)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_masks(on_meta, mask):
    tensors = by_default(inputs, SIZES)
    o = at.attention(*tensors, mask=attnc.mask(mask))
    assert (o - by_default(reference, *tensors, mask)).abs().max() < 0.01


def test_array(on_meta):
    """attnc.array, of NumPy, which the reference does not know."""
    tensors = by_default(inputs, SIZES)
    o = at.attention(*tensors, mask=lambda b, h, q, k: (q >= k) & (q - k < MORE[h]))
    expected = by_default(reference, *tensors, lambda b, h, q, k: (q >= k) & (q - k < OF_MORE[h]))
    assert (o - expected).abs().max() < 0.01


def test_scores(on_meta):
    tensors = by_default(inputs, SIZES)
    o = at.attention(*tensors, mask=attnc.causal(), score=attnc.score(modified))
    expected = by_default(reference, *tensors, lambda b, h, q, k: q >= k, modified)
    assert (o - expected).abs().max() < 0.01


def test_packed(on_meta):
    """Each sequence on its own; one of them is empty."""
    tensors, lengths = [t[0] for t in by_default(inputs, (1, 2, 21, 21))], [8, 0, 13]
    mask = lambda b, h, q, k: (q >= k) & (q - k < LIMIT[(b + 1) // 2]) | (torch.sqrt(q + 0.5) > k)  # noqa: E731
    o = at.attention(*tensors, mask=mask, layout="thd",
                     cu_seqlens_q=torch.tensor([0, 8, 8, 21], dtype=torch.int32, device="cpu"))
    for b, own in enumerate(zip(*(t.split(lengths) for t in tensors))):
        if lengths[b]:
            of_b = lambda _, h, q, k, b=b: mask(torch.tensor(b), h, q, k)  # noqa: E731
            expected = by_default(reference, *(t[None] for t in own), of_b)[0]
            assert (o[sum(lengths[:b]):][:lengths[b]] - expected).abs().max() < 0.01


@pytest.mark.parametrize("mask", [MASKS["captured tensor"], MASKS["real numbers"], constant])
def test_compiled(on_meta, mask):
    tensors = by_default(inputs, SIZES)
    torch._dynamo.reset()
    o = torch.compile(lambda *t: at.attention(*t, mask=mask), fullgraph=True, backend="aot_eager")(*tensors)
    assert (o - by_default(reference, *tensors, mask)).abs().max() < 0.01


def test_constants_stay_constants(on_meta):
    """torch.tensor(3) in a function is a number on any device, and the mask a band."""
    assert str(attnc.mask(constant)) == "#attn.band<left = 5, right = 0>" and not attnc.mask(constant).arrays
