# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traced masks as values, and the arrays that are bound to them."""
import subprocess
import sys
import textwrap

import attnc
import pytest
from attnc.trace import array, select, trace_mask, trace_score
from trace_reader import np, shown


def test_equal_functions_are_equal_masks():
    def make(values):
        values = array(values)
        return lambda b, h, q, k: (q - k < values[h]) | (values[(q * 3) % 2] == k)

    function = make([1, 2, 3])
    first, second = trace_mask(function), trace_mask(function)
    assert first == second and hash(first) == hash(second)
    assert all(first.arrays[name] is second.arrays[name] for name in first.arrays)
    other = trace_mask(make([4, 5, 6]))
    assert str(other) == str(first) and other != first
    with pytest.raises(TypeError, match="pickle"):
        __import__("pickle").dumps(first)
    calls = []
    trace_mask(lambda b, h, q, k: (calls.append(1), q >= k)[1])
    assert calls == [1]


def test_masks_apart():
    """Two traced masks have names of their own in one."""
    first, second = (trace_mask(lambda b, h, q, k, values=array(values): (q - k < values[h]) & (values[h] != k % 7))
                     for values in ([1, 2, 3], [9, 9, 9]))
    whole = first | second
    assert set(whole.arrays) == {"traced_hk", "traced_hk_1", "traced_row_begin", "traced_row_begin_1"}
    np.testing.assert_array_equal(shown(whole), shown(first) | shown(second))
    assert whole == first | second and (first | first).arrays == first.arrays
    np.testing.assert_array_equal(shown(whole & second), shown(second))
    assert (whole & second).arrays == whole.arrays


def test_array_values():
    values = np.array([1, 2, 3])
    wrapped = array(values)
    values[0] = 9  # it is a copy
    assert wrapped[0] == 1 and len(wrapped) == 3 and wrapped.shape == (3,) and list(np.asarray(wrapped)) == [1, 2, 3]
    assert select(True, 3, 4) == 3
    mask = trace_mask(lambda b, h, q, k: select(h < 1, q - k, wrapped[h]) < 2)
    np.testing.assert_array_equal(shown(mask)[:, 1:], np.broadcast_to(False, (2, 2, 13, 11)))
    with pytest.raises(attnc.TensorError, match=r"entries for 5 of q, got: the shape \(3,\), in 'traced_q'"):
        trace_mask(lambda b, h, q, k: wrapped[q] == 2).arrays["traced_q"].evaluate(1, 1, 1, 5, 5)
    with pytest.raises(attnc.TensorError, match=r"cannot evaluate 'traced_q' of a traced function for 5 of q "
                                                r"\(captured shapes: \(3,\)\)"):
        trace_mask(lambda b, h, q, k: wrapped[q + 1] == 2).arrays["traced_q"].evaluate(1, 1, 1, 5, 5)


def test_a_table_has_an_end():
    table = array(np.zeros((3, 41)))
    score = trace_score(lambda s, b, h, q, k: s + table[h, q - k + 20])
    with pytest.raises(attnc.TensorError, match="at most 21 queries and 21 keys"):
        score.arrays["traced_table"].evaluate(1, 3, 3, 22, 8)


def test_without_torch():
    code = """
        import sys
        sys.modules["torch"] = sys.modules["jax"] = None
        from attnc.trace import array, trace_mask
        ids = array([1, 1, 2])
        mask = trace_mask(lambda b, h, q, k: (ids[q] == ids[k]) & (q >= k) & (q.minimum(k).clamp(min=1) < 9))
        print(mask, mask.arrays["traced_ids_q"].evaluate(1, 1, 1, 3, 3).tolist())
    """
    answer = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert answer.stdout == ('#attn.and<#attn.causal, #attn.document<"traced_ids_q", "traced_ids_kv">, '
                      '#attn.predicate<"max(min(q, k), 1) <= 8">> [[2, 2, 3]]\n')
