# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NaN in padding: that of packed sequences and of ids reaches nothing; under masks of documents it does not reach o."""
import pytest
from test_torch import dense, make, D, G, H

torch = pytest.importorskip("torch")
import attnc  # noqa: E402
import attnc.torch as at  # noqa: E402

LENGTHS = torch.tensor([9, 0, 20, 5])
CU = torch.cat([LENGTHS.new_zeros(1), LENGTHS.cumsum(0)])
SLOTS = torch.tensor([2, 13, 13, 40, 47])  # of packed sequences with padding
TOKENS = 48


def owners(starts):
    """Which sequence each token belongs to, from 1 on; 0 is padding."""
    result = torch.zeros(TOKENS, dtype=torch.int32)
    for number, (start, length) in enumerate(zip(starts, LENGTHS), 1):
        result[start:start + length] = number
    return result


def with_ids(q, k, v, **options):
    ids = owners(SLOTS)[None]
    o = at.attention(q[None], k[None], v[None], ids=ids, segments=4, **options)
    return o[0]


def jagged(q, k, v, **options):
    nested = [torch.nested.nested_tensor_from_jagged(t, SLOTS, LENGTHS) for t in (q, k, v)]
    return at.attention(*nested, **options).values()


WAYS = {
    "thd": (CU, lambda *t, **options: at.attention(*t, layout="thd", cu_seqlens_q=CU, **options)),
    "thd padded": (SLOTS, lambda *t, **options: at.attention(*t, layout="thd padded", cu_seqlens_q=CU,
                                                             padded_offsets_q=SLOTS, **options)),
    "ids": (SLOTS, with_ids),
    "jagged": (SLOTS, jagged),
}


def results(call, tensors, do):
    own = [t.detach().requires_grad_() for t in tensors]
    o = call(*own)
    return o.detach(), *torch.autograd.grad(o, own, do)


def expected(tensors, do, visible):
    """By the dense formula in float64, with zeros for NaN."""
    clean = [t.nan_to_num(0).double() for t in (*tensors, do)]
    return results(lambda *t: dense(*(x[None] for x in t), visible)[0][0], clean[:3], clean[3])


def are_near(found, wanted, rows):
    return all(((a[rows] - b[rows]).abs() < 0.05).all() for a, b in zip(found, wanted))  # NaN is not below


@pytest.mark.parametrize("mask, bound", [(attnc.full(), None), (attnc.causal(), None), (attnc.window(4), 4)])
@pytest.mark.parametrize("way", WAYS)
def test_packed(way, mask, bound):
    """o and gradients are those without padding; of padding itself o is 0, and so are gradients."""
    starts, call = WAYS[way]
    owner = owners(starts)
    tensors, do = [make(TOKENS, heads, D, seed=i) for i, heads in enumerate((H, G, G))], make(TOKENS, H, D, seed=9)
    for t in (*tensors, do):
        t[owner == 0] = torch.nan
    distance = torch.arange(TOKENS)[:, None] - torch.arange(TOKENS)
    visible = (owner[:, None] == owner) & (owner > 0) & ((distance >= 0) | (mask == attnc.full())) & (
        distance < (bound or TOKENS))
    found = results(lambda *t: call(*t, mask=mask), tensors, do)
    assert are_near(found, expected(tensors, do, visible), owner > 0)
    assert way == "jagged" or not found[0][owner == 0].any()
    assert not any(t[owner == 0].any() for t in found[1:])


@pytest.mark.parametrize("hidden", [0, 3])
@pytest.mark.parametrize("layout", ["bshd", "thd"])
def test_documents(layout, hidden):
    """A mask of documents hides rows of padding, and those of other documents: their NaN does not reach o. Gradients
    are right where such rows are filled."""
    ids = owners(SLOTS)
    more = {"cu_seqlens_q": torch.tensor([0, TOKENS])} if layout == "thd" else {}
    lead = (lambda t: t) if layout == "thd" else (lambda t: t[None])
    def call(*t):
        return at.attention(*map(lead, t), mask=attnc.causal() & attnc.document("ids"), layout=layout,
                            arrays={"ids": lead(ids)}, **more).view(TOKENS, H, D)
    tensors, do = [make(TOKENS, heads, D, seed=i) for i, heads in enumerate((H, G, G))], make(TOKENS, H, D, seed=9)
    for t in (*tensors, do):
        t[ids == hidden] = torch.nan
    visible = (ids[:, None] == ids) & (ids > 0) & torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
    wanted, seen = expected(tensors, do, visible), (ids != hidden) & (ids > 0)
    assert are_near([call(*tensors)], wanted, seen)
    kept = (ids != hidden)[:, None, None]
    found = results(lambda *t: torch.where(kept, call(*(torch.where(kept, x, 0) for x in t)), 0), tensors, do)
    assert are_near(found, wanted, seen) and not any(t[ids == hidden].any() for t in found[1:])
