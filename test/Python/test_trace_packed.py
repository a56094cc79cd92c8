# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traced functions for packed sequences: b is the sequence, q and k count from its start; against float64."""
import attnc
import attnc.torch as at
import pytest
from attnc.trace import trace_mask
from trace_kernels import inputs, reference, torch

LENGTHS = (7, 0, 12, 5)
CU = torch.tensor([0, *torch.tensor(LENGTHS).cumsum(0)])
SLOTS = torch.tensor([2, 9, 11, 25, 30])  # two tokens of padding, ..., and a slot that is longer than its sequence
SHUFFLED = torch.tensor([20, 8, 0, 13, 32])  # slots of keys in another order
LIMIT, WINDOWS, SLOPES = torch.tensor([3, 0, 9, 2]), torch.tensor([4, 6]), torch.tensor([0.1, 0.5])
KEEP = torch.rand(4, 12, generator=torch.Generator().manual_seed(0)) < 0.7
TABLE = torch.rand(2, 23, generator=torch.Generator().manual_seed(1))


def visible(b, h, q, k):
    return (q - k < WINDOWS[h]) & KEEP[b, k] & (k < LIMIT[b] + q) | (q == k)


def modified(s, b, h, q, k):
    return s * SLOPES[h] + TABLE[h, q - k + 11]


def expected(sequences):
    """The result of each sequence by itself: [tokens, heads, dim]."""
    return [reference(*(t[None] for t in own), lambda _, h, q, k, b=b: visible(b, h, q, k),
                      lambda s, _, h, q, k, b=b: modified(s, b, h, q, k))[0]
            if len(own[0]) and len(own[1]) else torch.zeros_like(own[0]) for b, own in enumerate(sequences)]


def is_near(got, wanted):
    return got.shape == wanted.shape and bool(((got - wanted).abs() < 0.01).all())


def parts():
    """For each sequence, its q, k and v."""
    q, k, v = (t[0] for t in inputs((1, 2, int(CU[-1]), int(CU[-1]))))
    return [[t[begin:end] for t in (q, k, v)] for begin, end in zip(CU, CU[1:])]


def packed(sequences, starts, tokens):
    """One buffer of sequences at these places, with NaN elsewhere."""
    whole = torch.full((tokens, *sequences[0].shape[1:]), float("nan")).bfloat16()
    for start, sequence in zip(starts, sequences):
        whole[start:start + len(sequence)] = sequence
    return whole


@pytest.mark.parametrize("starts_q, starts_k, tokens", [(CU, CU, 26), (SLOTS, SLOTS, 31), (SLOTS, SHUFFLED, 40)])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_padding(starts_q, starts_k, tokens, is_compiled):
    layout = "thd" if starts_q is CU else "thd padded"
    offsets = {} if layout == "thd" else {"padded_offsets_q": starts_q, "padded_offsets_kv": starts_k}
    sequences = parts()
    tensors = [packed([own[i] for own in sequences], starts, tokens) for i, starts in enumerate(
        (starts_q, starts_k, starts_k))]
    score = attnc.score(modified)
    mask = attnc.mask(visible)

    def call(q, k, v):
        return at.attention(q, k, v, mask=mask, score=score, layout=layout, cu_seqlens_q=CU, **offsets)

    torch._dynamo.reset()
    o = (torch.compile(call, fullgraph=True, backend="aot_eager") if is_compiled else call)(*tensors)
    for start, wanted in zip(starts_q, expected(sequences)):
        assert is_near(o[start:start + len(wanted)], wanted)


@pytest.mark.parametrize("side", ["q", "k"])
def test_one_side_packed(side):
    """Queries packed and keys dense, and the reverse."""
    q, k, v = inputs((4, 2, 12, 12))
    own = [[t[:length] if (name == "q") == (side == "q") else t for name, t in zip("qkv", (q[b], k[b], v[b]))]
           for b, length in enumerate(LENGTHS)]
    if side == "q":
        q = torch.cat([part[0] for part in own])
    else:
        k, v = (torch.cat([part[i] for part in own]) for i in (1, 2))
    mask, score = attnc.mask(visible), attnc.score(modified)
    layout = ("thd", "bshd", "bshd", "thd") if side == "q" else ("bshd", "thd", "thd", "bshd")
    kernel = attnc.Problem(mask, layout=layout, heads=2, dims=16, score=score).compile("cpu")
    tensors = {"q": q, "k": k, "v": v, "o": torch.empty_like(q), f"cu_seqlens_{side.replace('k', 'kv')}": CU.int()}
    tensors["lse"] = torch.empty(2, len(q)) if side == "q" else torch.empty(4, 2, 12)
    for name, array in {**mask.arrays, **score.arrays}.items():
        tensors[name] = array.evaluate(4, 2, 2, q.shape[-3], k.shape[-3], packed={side: (CU, None)})
    size = kernel.workspace_size(tensors)
    kernel.launch(tensors, workspace=torch.empty(size, dtype=torch.uint8) if size else None)
    o = tensors["o"].split(LENGTHS) if side == "q" else tensors["o"]
    assert all(map(is_near, o, expected(own)))


def test_a_table_has_an_end():
    table = torch.rand(2, 9)
    score = attnc.score(lambda s, b, h, q, k: s + table[h, q - k + 4])
    with pytest.raises(attnc.TensorError, match="at most 5 queries and 5 keys, .*, got: 12 and 12"):
        score.arrays["traced_table"].evaluate(4, 2, 2, 24, 24, packed={"q": (CU, None), "k": (CU, None)})


def test_arrays():
    ids, windows = torch.tensor([[1] * 3 + [2] * 7, [3] * 10]), torch.tensor([1, 5])
    mask = trace_mask(lambda b, h, q, k: (ids[b, q] == ids[b, k]) & (q - k < windows[h]) & (k < ids[b, 0] * 2))
    cu = torch.tensor([0, 4, 10], dtype=torch.int32)
    packed = {name: array.evaluate(2, 2, 2, 12, 10, packed={"q": (cu, None), "k": (cu, None)})
              for name, array in mask.arrays.items()}
    dense = {name: array.evaluate(2, 2, 2, 6, 6) for name, array in mask.arrays.items()}
    assert {name: tuple(x.shape) for name, x in packed.items()} == {
        "traced_ids_q": (12,), "traced_ids_kv": (10,), "traced_row_begin": (2, 12), "traced_prefix": (2,)}
    for name in ("traced_ids_q", "traced_ids_kv", "traced_row_begin"):
        assert torch.equal(packed[name][..., :10], torch.cat([dense[name][0, ..., :4], dense[name][1, ..., :6]], -1))
    assert torch.equal(packed["traced_prefix"], dense["traced_prefix"])
    with pytest.raises(attnc.TensorError, match="expected padded_offsets_q with the layout 'thd padded', got: None"):
        at.attention(*(t[0] for t in inputs((1, 2, 12, 12))), mask=mask, layout="thd padded", cu_seqlens_q=cu)
