# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of captured tensors: kept, made again, packed, with gradients."""
import pytest
from attnc.trace import trace_mask, trace_score

torch = pytest.importorskip("torch")


def test_captured_tensors_that_change():
    windows = torch.tensor([1, 2])
    array = trace_mask(lambda b, h, q, k: q - k < windows[h]).arrays["traced_row_begin"]
    assert array.captured == (windows,) and array.axes == "bhq" and array.dtype == "i32"
    first = array.evaluate(1, 2, 1, 4, 4)
    assert first.dtype == torch.int32 and first.is_contiguous() and array.evaluate(1, 2, 1, 4, 4) is first
    assert first.tolist() == [[[0, 1, 2, 3], [-1, 0, 1, 2]]]
    windows[0] = 3
    assert array.evaluate(1, 2, 1, 4, 4).tolist() == [[[-2, -1, 0, 1], [-1, 0, 1, 2]]]
    assert array.evaluate(2, 2, 1, 3, 9, torch.device("cpu")).shape == (2, 2, 3)
    assert array.evaluate(0, 2, 1, 3, 9).shape == (0, 2, 3)
    with torch.inference_mode():
        of_inference = torch.tensor([1, 2])
        array = trace_mask(lambda b, h, q, k: q - k < of_inference[h]).arrays["traced_row_begin"]
        before = array.evaluate(1, 2, 1, 4, 4)
        of_inference[0] = 3
        assert not torch.equal(array.evaluate(1, 2, 1, 4, 4), before)


def test_gradients_of_captured_tensors():
    slopes, table = torch.rand(3, requires_grad=True), torch.rand(3, 9, requires_grad=True)
    score = trace_score(lambda s, b, h, q, k: s - slopes[h] * (q - k) + torch.exp(slopes[h]) + table[h, q - k + 4])
    plain, made, relative = (score.arrays[name] for name in ("traced_score", "traced_score_1", "traced_table"))
    assert plain.evaluate(2, 3, 3, 4, 4) is slopes and plain.source is slopes and made.source is None
    result = made.evaluate(2, 3, 3, 4, 4)
    assert torch.allclose(torch.autograd.grad(result.sum(), slopes)[0], slopes.exp())
    assert made.evaluate(2, 3, 3, 4, 4) is not result  # its graph may be gone
    gradient, = torch.autograd.grad(relative.evaluate(2, 3, 3, 4, 4)[0, 0], table)
    assert gradient[0].tolist() == [0.0] * 8 + [1.0]  # of k - q = -4
    half = slopes.detach().bfloat16()
    converted = trace_score(lambda s, b, h, q, k: s * half[h]).arrays["traced_score"].evaluate(2, 3, 3, 4, 4)
    assert converted.dtype == torch.float32 and torch.equal(converted, half.float())
    longer = torch.rand(5, 20)
    cut = trace_score(lambda s, b, h, q, k: s + longer[h, q]).arrays["traced_score"].evaluate(2, 3, 3, 4, 4)
    assert torch.equal(cut, longer[:3, :4])
