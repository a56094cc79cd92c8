# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions as score modifiers, against the functions on scores and positions."""
import attnc
import pytest
from attnc.trace import array, trace_score
from trace_reader import SIZES, as_numpy, np, positions, scored
from trace_tables import ARRAYS

of_q, of_k, of_bq = (ARRAYS[name] for name in ("of_q", "of_k", "of_bq"))
slopes, gate, pairs, table = (array(np.random.default_rng(1).random(shape))
                              for shape in ((3,), (2, 3), (13, 11), (3, 41)))
SCORES = [
    (lambda s, b, h, q, k: s, '#attn.score<"s">'),
    (lambda s, b, h, q, k: 3.0 * np.tanh(s / 3.0), "#attn.softcap<3.0>"),
    (lambda s, b, h, q, k: s + pairs[q, k], '#attn.bias<"traced_score", qk>'),
    (lambda s, b, h, q, k: slopes[h] * s, '#attn.head_scale<"traced_score">'),
    (lambda s, b, h, q, k: s * gate[b, h], '#attn.score<"s * traced_score[b, h]">'),
    (lambda s, b, h, q, k: s - slopes[h] * abs(q - k), '#attn.score<"s - traced_score[h] * abs(q - k)">'),
    (lambda s, b, h, q, k: s + (k - q) * np.exp2(-(h + 1) * 8 / 3), '#attn.score<"s + (k - q) * traced_score[h]">'),
    (lambda s, b, h, q, k: np.where(q - k < 4, s, s - np.log(1 + (q - k) / 64)),
     '#attn.score<"(q - k < 4 ? s : s - log((q - k) / 64.0 + 1))">'),
    (lambda s, b, h, q, k: s + table[h, q - k + 20], '#attn.relative_bias<"traced_table", 20>'),
    (lambda s, b, h, q, k: s + table[h, np.clip(q - k, -3, 5) + 3], '#attn.relative_bias<"traced_table", 5>'),
    (lambda s, b, h, q, k: 2 * s - table[h, abs(k - q)] * slopes[h],
     '#attn.score<"s * 2">, #attn.relative_bias<"traced_table", 40>'),
    (lambda s, b, h, q, k: np.where(((q ^ k) & 3) < 2, s, s - 1.0), '#attn.score<"((q ^ k) % 4 < 2 ? s : s - 1.0)">'),
    (lambda s, b, h, q, k: s + ((q << 2) & ~(k | h)) * slopes[h] + ((of_k[k] ^ 5) >> 1),
     '#attn.score<"s + ((q * 4) & (-1 - (k | h))) * traced_score[h] + traced_score_1[k]">'),
    (lambda s, b, h, q, k: s + q // 3 - k % 4 + 5 // 2 + q * k + q / (k + 1), None),
    (lambda s, b, h, q, k: np.minimum(s, of_bq[b, q]) + np.maximum(0.5, np.abs(s)), None),
    (lambda s, b, h, q, k: np.where((of_q[q] == of_k[k]) & (q != k) | (slopes[h] > 0.5), s, -100.0) ** 2, None),
    (lambda s, b, h, q, k: np.where((q < 3) == (k < 4), -s, s / (1.5 + q)) * 1e-5, None),
    (lambda s, b, h, q, k: np.sqrt(np.abs(s)) - np.exp(-np.abs(s)) + np.where(s < 0, pairs[q, k], slopes[h] - s), None),
    (lambda s, b, h, q, k: s + np.log(slopes[h]) * of_k[k % 5], None),
]


@pytest.mark.parametrize("function, text", SCORES)
def test_scores(function, text):
    s = np.random.default_rng(2).standard_normal(SIZES)
    expected = as_numpy(function)(s, *positions())
    score = trace_score(function)
    np.testing.assert_allclose(scored(score, s), np.broadcast_to(expected, SIZES), 2e-5, 2e-5, err_msg=str(score))
    assert text in (None, str(score))
    attnc.Problem(attnc.full(), heads=3, dims=16, score=score).describe()  # its verifier has no complaint
