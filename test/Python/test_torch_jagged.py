# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc.torch.attention of nested (jagged) tensors, and in exported programs, on the CPU."""
import io

import pytest

torch = pytest.importorskip("torch")
import attnc  # noqa: E402
import attnc.torch as at  # noqa: E402
from attnc import TensorError, UnsupportedError  # noqa: E402
from test_torch import check_gradients, dense, make, qkv, D, G, H  # noqa: E402

LENGTHS = torch.tensor([5, 0, 11, 1])
OFFSETS = torch.cat([LENGTHS.new_zeros(1), LENGTHS.cumsum(0)])
TOKENS = int(OFFSETS[-1])
SEQUENCE = torch.repeat_interleave(torch.arange(4), LENGTHS)
VISIBLE = (SEQUENCE[:, None] == SEQUENCE) & torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()


def packed():
    return [make(TOKENS, h, D, seed=i) for i, h in enumerate((H, G, G))]


def jagged(tensors, offsets=OFFSETS):
    return [torch.nested.nested_tensor_from_jagged(t, offsets) for t in tensors]


def by_dense(q, k, v):
    return dense(q[None], k[None], v[None], VISIBLE)[0][0]


@pytest.mark.parametrize("layout", ["bshd", "bhsd"])
def test_jagged(layout):
    def call(*tensors):
        given = jagged(tensors)
        if layout == "bhsd":
            given = [t.transpose(1, 2) for t in given]
        o = at.attention(*given, mask=attnc.causal(), layout=layout)
        assert o.shape == given[0].shape  # the same lengths: o and q add up
        o = o + 0 * given[0]
        return (o.transpose(1, 2) if layout == "bhsd" else o).values()
    check_gradients(call, by_dense, packed())


def test_jagged_with_gaps():
    """Sequences that are views into rows; what lies between them is not read."""
    rows = [make(4, 13, h, D, seed=i) for i, h in enumerate((H, G, G))]
    for t in rows:
        for row, length in zip(t, LENGTHS):
            row[length:] = torch.nan
    q = torch.nested.narrow(rows[0], 1, torch.zeros(4, dtype=torch.int64), LENGTHS, layout=torch.jagged)
    k, v = (torch.nested.nested_tensor_from_jagged(t.flatten(0, 1), q.offsets(), q.lengths()) for t in rows[1:])
    o, lse = at.attention(q, k, v, mask=attnc.causal(), return_lse=True)
    compact = [torch.cat([row[:n] for row, n in zip(t, LENGTHS)]) for t in rows]
    expected = at.attention(*compact, mask=attnc.causal(), layout="thd", cu_seqlens_q=OFFSETS)
    assert torch.equal(torch.cat([*o.unbind()]), expected)


def test_jagged_cross_attention():
    q, (k, v) = jagged(packed()[:1]), jagged([make(20, G, D, seed=i) for i in (1, 2)], torch.tensor([0, 3, 9, 9, 20]))
    o = at.attention(*q, k, v, mask=attnc.full())
    expected = at.attention(q[0].values(), k.values(), v.values(), mask=attnc.full(), layout="thd",
                            cu_seqlens_q=OFFSETS, cu_seqlens_kv=torch.tensor([0, 3, 9, 9, 20]))
    assert torch.equal(o.values(), expected) and not o.values()[5:16].any()  # the third has no keys


def test_jagged_compiled():
    step = torch.compile(lambda q, k, v: at.attention(q, k, v, mask=attnc.causal()).values().float().square().sum(),
                         fullgraph=True, backend="aot_eager")
    tensors = [t.requires_grad_() for t in packed()]
    alone = [t.detach().clone().requires_grad_() for t in tensors]
    step(*jagged(tensors)).backward()
    at.attention(*jagged(alone), mask=attnc.causal()).values().float().square().sum().backward()
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(tensors, alone))


def test_jagged_errors():
    q, k, v = jagged(packed())
    other = jagged([make(20, G, D)], torch.tensor([0, 3, 9, 9, 20]))[0]
    three = jagged([make(20, G, D)], torch.tensor([0, 3, 9, 20]))[0]
    for tensors, options, kind, message in (
            ((q, k, v), dict(layout="sbhd"), UnsupportedError, "'bshd' and 'bhsd'"),
            ((q, k, v), dict(layout="bhsd"), TensorError, "as dimension 2 in the layout 'bhsd'"),
            ((q, k, v), dict(cu_seqlens_q=OFFSETS), TensorError, "got: both"),
            ((q, k, other), {}, TensorError, "expected 'v' with the sequences of 'k'"),
            ((q, three, three), {}, TensorError, "as many sequences"),
            ((q, packed()[1], v), {}, TensorError, "got 'k': torch.strided"),
            ((q.values(), k, v), dict(layout="thd", cu_seqlens_q=OFFSETS), TensorError, "'k'"),
            ((q, k, v), dict(arrays={"x": OFFSETS}), TensorError, "got also: x")):
        with pytest.raises(kind) as error:
            at.attention(*tensors, **{"mask": attnc.causal(), **options})
        assert message in str(error.value), str(error.value)


def test_export():
    """An exported program holds the problem's text; lengths may differ from those of the example."""
    class Model(torch.nn.Module):
        def forward(self, q, k, v):
            return at.attention(q, k, v, mask=attnc.causal() & attnc.window(8))
    length = torch.export.Dim("length", min=2, max=4096)
    program = torch.export.export(Model(), tuple(qkv()), dynamic_shapes=[{1: length}] * 3)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for seqlen in (2, 37, 100):
        tensors = qkv(seqlen=seqlen)
        assert torch.equal(loaded(*tensors), Model()(*tensors))
