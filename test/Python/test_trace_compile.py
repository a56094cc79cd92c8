# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traced functions and bound arrays under torch.compile, as one graph, against float64."""
import attnc
import attnc.torch as at
import pytest
from trace_kernels import inputs, reference, torch

SIZES = (2, 2, 21, 21)
WINDOW, LIMIT, SLOPES = 6, torch.tensor([3, 9]), torch.tensor([0.1, 0.5])
IDS = torch.arange(21).div(5, rounding_mode="floor").expand(2, 21).int() + 1
OTHER = (torch.arange(21) % 2).expand(2, 21).int() + 1


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


def compiled(function, **options):
    return torch.compile(function, fullgraph=True, backend="aot_eager", **options)


def graphs():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def is_near(got, tensors, mask, score=None):
    return (got - reference(*tensors, mask, score)).abs().max() < 0.01


def helper(q, k):
    return q - k < WINDOW


def near(b, h, q, k):
    return (q >= k) & (q - k < LIMIT[b])


def bits(b, h, q, k):
    return (q ^ k) < 9


def slope(s, b, h, q, k):
    return s - SLOPES[h] * (q - k) + torch.sin(LIMIT[b])


MADE_OUTSIDE = {function: attnc.mask(function) for function in (near, bits)}
BOUND, SCORE = attnc.document(IDS) & attnc.document(OTHER), attnc.score(slope)


def same(*ids):
    return lambda b, h, q, k: (torch.stack([x[b, q] == x[b, k] for x in ids])).all()


@pytest.mark.parametrize("call, mask, score", [
    (lambda *t: at.attention(*t, mask=MADE_OUTSIDE[near] & MADE_OUTSIDE[bits] | attnc.sink(2)),
     lambda b, h, q, k: near(b, h, q, k) & bits(b, h, q, k) | (k < 2), None),
    (lambda *t: at.attention(*t, mask=lambda b, h, q, k: helper(q, k) & (k <= q)),
     lambda b, h, q, k: (q >= k) & (q - k < WINDOW), None),
    (lambda *t: at.attention(*t, mask=attnc.mask(lambda b, h, q, k: q - k < LIMIT[b]) & attnc.causal()), near, None),
    (lambda *t: (at.attention(*t, mask=BOUND) + at.attention(*t, mask=attnc.document(IDS) & attnc.document(OTHER))) / 2,
     same(IDS, OTHER), None),
    (lambda *t: at.attention(*t, mask=attnc.document(IDS) & near, score=SCORE),
     lambda b, h, q, k: (IDS[b, q] == IDS[b, k]) & near(b, h, q, k), slope),
    (lambda *t: at.attention(*t, mask=attnc.causal(), score=slope), lambda b, h, q, k: q >= k, slope),
])
def test_one_graph(call, mask, score):
    tensors = inputs(SIZES)
    assert is_near(compiled(call)(*tensors), tensors, mask, score) and graphs() == 1
    assert torch.equal(compiled(call)(*tensors), call(*tensors))


@pytest.mark.parametrize("layout", ["bshd", "thd"])
def test_lengths(layout):
    """50 lengths: one graph, few kernels, and none in a second pass over them; gradients of a captured tensor, too."""
    slopes, far = torch.rand(2, requires_grad=True), torch.tensor([3, 50])
    score = attnc.score(lambda s, b, h, q, k: s - slopes[h] * (q - k))
    mask = attnc.mask(lambda b, h, q, k: (q >= k) & (q - k < LIMIT[b]) | (k < far[b] // 10) | (k - q < q % far[b] // 9))

    def of(length):
        tensors = inputs((2, 2, length, length))
        if layout == "thd":
            tensors = [t[0] for t in tensors]
        cu = torch.tensor([0, length // 3, length]) if layout == "thd" else None
        return [t.requires_grad_() for t in tensors], cu

    def step(q, k, v, cu):
        return at.attention(q, k, v, mask=mask, score=score, layout=layout, cu_seqlens_q=cu).float().square().sum()

    run, kernels = compiled(step, dynamic=True), [attnc.compile_count()]
    for lengths in (range(20, 70), range(20, 70, 5)):
        for length in lengths:
            tensors, cu = of(length)
            found = torch.autograd.grad(run(*tensors, cu), [*tensors, slopes])
            if length % 7 == 0:
                assert all(map(torch.equal, found, torch.autograd.grad(step(*tensors, cu), [*tensors, slopes])))
        kernels.append(attnc.compile_count())
    assert graphs() == 1 and kernels[1] - kernels[0] <= 16 and kernels[2] == kernels[1]  # 8 a pass, for short sequences


def test_what_changes():
    """Tensors are read at each call; what else a function reads makes torch.compile compile again."""
    global WINDOW, LIMIT
    before, tensors = (WINDOW, LIMIT), inputs(SIZES)
    run = compiled(lambda *t: at.attention(*t, mask=lambda b, h, q, k: near(b, h, q, k) & helper(q, k)))
    wanted = lambda b, h, q, k: near(b, h, q, k) & helper(q, k)  # noqa: E731
    try:
        assert is_near(run(*tensors), tensors, wanted)
        LIMIT = torch.tensor([2, 4])
        assert is_near(run(*tensors), tensors, wanted)
        LIMIT[0] = 20
        assert is_near(run(*tensors), tensors, wanted) and graphs() == 1
        WINDOW = 3
        assert is_near(run(*tensors), tensors, wanted) and graphs() == 2
    finally:
        WINDOW, LIMIT = before


def test_functions_as_arguments():
    """Functions of one text that captured other values are other masks; other tensors are other inputs."""
    def capturing(window):
        return torch.nn.attention.flex_attention.and_masks(
            lambda b, h, q, k: q - k < (window if isinstance(window, int) else window[h]), bits)

    tensors, run = inputs(SIZES), compiled(lambda q, k, v, mask: at.attention(q, k, v, mask=mask))
    count = []
    for window in (3, 5, torch.tensor([2, 7]), torch.tensor([9, 1])):
        assert is_near(run(*tensors, capturing(window)), tensors, capturing(window))
        count.append(graphs())
    assert count == [1, 2, 3, 3]


class Holder:
    window = 3

    def mask(self, b, h, q, k):
        return q - k < self.window


@pytest.mark.parametrize("make, words", [
    (lambda: lambda *t: at.attention(*t, mask=lambda b, h, q, k: q * k < 3), "not by a constant"),
    (lambda: lambda *t: at.attention(*t, mask=lambda b, h, q, k: q - k < t[0].shape[1]), "captures tensors, objects"),
    (lambda: lambda *t: at.attention(*t, mask=Holder().mask), "expected a plain function"),
    (lambda: lambda *t: at.attention(*t, mask=recursive), "does not call itself"),
    (lambda: lambda *t: at.attention(*t, mask=lambda b, h, q, k: q - k < LIMIT.max()), "function reads itself"),
    (lambda: lambda *t: at.attention(*t, mask=lambda b, h, q, k: q - k < PLACE.window), "got: a Holder"),
])
def test_refused(make, words):
    with pytest.raises(Exception, match=words):
        compiled(make())(*inputs(SIZES))


PLACE = Holder()


def recursive(b, h, q, k):
    return q >= k if isinstance(q, int) else recursive(0, 0, 0, 0)
