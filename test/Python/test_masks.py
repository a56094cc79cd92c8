# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks, score modifiers and problems as values: texts, equality, errors. Nothing is compiled."""
import copy
import pickle
import subprocess
import sys

import attnc
import pytest
from attnc import ProblemError

TEXTS = [
    (attnc.full(), "#attn.full"),
    (attnc.causal(), "#attn.causal"),
    (attnc.causal(align="end"), "#attn.causal<bottom_right>"),
    (attnc.window(1024), "#attn.band<left = 1023, right = 0>"),
    (attnc.window(8, right=2, align="end"), "#attn.band<left = 7, right = 2, bottom_right>"),
    (attnc.band(left=128), "#attn.band<left = 128>"),
    (attnc.band(right=-1), "#attn.band<right = -1>"),
    (attnc.band(), "#attn.full"),
    (attnc.sink(4), "#attn.prefix<4>"),
    (attnc.prefix("lengths"), '#attn.prefix<"lengths">'),
    (attnc.global_rows(2), "#attn.global_rows<2>"),
    (attnc.chunk(512), "#attn.chunk<512>"),
    (attnc.pooled(32, 16), "#attn.pooled<length = 32, stride = 16>"),
    (attnc.pooled(4, 4, "n"), '#attn.pooled<length = 4, stride = 4, keys = "n">'),
    (attnc.strided(4), "#attn.strided<stride = 4>"),
    (attnc.strided(4, 1, align="end"), "#attn.strided<stride = 4, offset = 1, bottom_right>"),
    (attnc.document(), "#attn.document"),
    (attnc.document("ids"), '#attn.document<"ids_rows", "ids_keys">'),
    (attnc.document("a", "b"), '#attn.document<"a", "b">'),
    (attnc.rows(end="e"), '#attn.row_interval<end = "e">'),
    (attnc.rows("a", "b", heads="kv"), '#attn.row_interval<begin = "a", end = "b", per_kv_head>'),
    (attnc.columns("a", "b", heads="query"), '#attn.column_interval<begin = "a", end = "b", per_head>'),
    (attnc.tree("n", "f", "e"), '#attn.tree<"n", "f", "e">'),
    (attnc.ancestors("p"), '#attn.ancestors<"p">'),
    (attnc.block_list("l", 64, 32), '#attn.block_list<"l", rows = 64, keys = 32>'),
    (attnc.block_list("l", 1, 64, heads="query"), '#attn.block_list<"l", rows = 1, keys = 64, per_head>'),
    (attnc.block_list("l", heads=None), '#attn.block_list<"l", rows = 64, keys = 64, shared>'),
    (attnc.block_map("o", "c", 64, 128, per_sequence=True, heads="query"),
     '#attn.block_map<"o", "c", q = 64, kv = 128, per_sequence, per_head>'),
    (attnc.where("(q - k) % 3 == 0"), '#attn.predicate<"(q - k) % 3 == 0">'),
    (attnc.heads(attnc.causal(), attnc.full()), "#attn.heads<#attn.causal, #attn.full>"),
    (~attnc.causal(), "#attn.not<#attn.causal>"),
    (attnc.causal() - attnc.window(2), "#attn.diff<#attn.causal, #attn.band<left = 1, right = 0>>"),
    (attnc.causal() & attnc.window(2) & attnc.chunk(8),
     "#attn.and<#attn.causal, #attn.band<left = 1, right = 0>, #attn.chunk<8>>"),
    (attnc.causal() & (attnc.window(2) | attnc.sink(1)),
     "#attn.and<#attn.causal, #attn.or<#attn.band<left = 1, right = 0>, #attn.prefix<1>>>"),
]


@pytest.mark.parametrize("mask, text", TEXTS, ids=[text for _, text in TEXTS])
def test_text(mask, text):
    assert str(mask) == text
    attnc.parse(text)  # the dialect's own parser takes it
    assert pickle.loads(pickle.dumps(mask)) == mask and copy.deepcopy(mask) is mask
    assert hash(mask) == hash(type(mask)(text)) and mask == type(mask)(text)


SCORES = [
    (attnc.softcap(30), "#attn.softcap<30.0>"),
    (attnc.softcap(1e-5), "#attn.softcap<1.0e-05>"),
    (attnc.alibi(), "#attn.alibi"),
    (attnc.alibi("slopes", align="end"), '#attn.alibi<"slopes", bottom_right>'),
    (attnc.bias("pairs", "hqk"), '#attn.bias<"pairs", hqk>'),
    (attnc.relative_bias("t", 128), '#attn.relative_bias<"t", 128>'),
    (attnc.head_scale("f"), '#attn.head_scale<"f">'),
    (attnc.score("s - 0.1 * abs(q - k)"), '#attn.score<"s - 0.1 * abs(q - k)">'),
]


@pytest.mark.parametrize("score, text", SCORES, ids=[text for _, text in SCORES])
def test_score_text(score, text):
    assert str(score) == text
    assert all(attnc.Problem(attnc.causal(), heads=8, dims=64, score=score).supported())


@pytest.mark.parametrize("make, message", [
    (lambda: attnc.window(0), "expected a window's size within [1, 2^30], got: 0"),
    (lambda: attnc.sink(-1), "expected a sink's length within [0, 2^30], got: -1"),
    (lambda: attnc.softcap(0), "expected a cap above 0, got: 0"),
    (lambda: attnc.window(2.5), "expected a window's size to be an integer, got: 2.5"),
    (lambda: attnc.window(True), "expected a window's size to be an integer, got: True"),
    (lambda: attnc.causal(align="left"), "expected causal's align to be 'start' or 'end', got: 'left'"),
    (lambda: attnc.document("a b"), "expected ids to be an identifier, got: 'a b'"),
    (lambda: attnc.rows(), "expected begin or end of rows, got: neither"),
    (lambda: attnc.heads(attnc.causal(), 3), "expected masks, got: 3"),
    (lambda: attnc.where('q < "k"'), "expected a condition as a string without quotes"),
    (lambda: attnc.softcap(float("nan")), "expected a cap to be a finite number, got: nan"),
    (lambda: attnc.parse("#attn.cusal"), "which is near `#attn.causal`"),
    (lambda: attnc.Problem("causal", heads=1, dims=8), "expected an attnc.Mask as the mask, got: 'causal'"),
    (lambda: attnc.Problem(attnc.causal(), heads=(1, 2, 3), dims=8), "expected one or two integers as heads"),
    (lambda: attnc.Problem(attnc.causal(), heads=1, dims=8, layout="bsdh"), "expected a layout of 'bshd'"),
    (lambda: attnc.Problem(attnc.causal(), heads=1, dims=8, dtype="f64"),
     "expected dtype 'bf16', 'f16' or 'f32', got: 'f64'"),
    (lambda: attnc.Problem(attnc.causal(), heads=1, dims=7).lower("cpu"), "a multiple of 8 from 8 to 512, got: 7"),
    (lambda: attnc.Problem(attnc.causal(), heads=1, dims=7).describe(), "a multiple of 8 from 8 to 512, got: 7"),
])
def test_refused(make, message):
    with pytest.raises(ProblemError) as error:
        make()
    assert message in str(error.value)
    assert isinstance(error.value, ValueError)


def test_no_truth_value():
    with pytest.raises(TypeError, match="combine masks by `&`, `|`"):
        attnc.causal() and attnc.full()
    with pytest.raises(TypeError):
        attnc.causal() & 3
    with pytest.raises(AttributeError, match="frozen"):
        attnc.causal().text = ""


def test_bound_arrays():
    ids, other = attnc.Shape((2, 8), "i32"), attnc.Shape((2, 8), "i32")
    mask = attnc.document(ids=ids) & attnc.causal()
    assert mask.arrays == {"segment_ids_q": ids, "segment_ids_kv": ids}
    assert mask == attnc.document(ids=ids) & attnc.causal() and mask != attnc.document(ids=other) & attnc.causal()
    assert hash(mask) == hash(attnc.document() & attnc.causal())
    with pytest.raises(TypeError, match="bound arrays"):
        pickle.dumps(mask)


def test_problem():
    problem = attnc.Problem(attnc.causal(), heads=(8, 2), dims=64, layout="thd", score=[attnc.softcap(20)],
                            sink="sinks", dropout=(0.1, "seed"), max_seqlen=(4, 16), outputs="o")
    assert problem.text == (
        "attn.problem @attention mask(#attn.causal) layout(thd) heads(8, 2) dims(64) dtype(bf16) "
        'score([#attn.softcap<20.0>]) sink("sinks") dropout(0.1, "seed") outputs(o) max_seqlen(4, 16)')
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert problem.replace(dims=128).text == problem.text.replace("dims(64)", "dims(128)")
    names = [t["name"] for t in problem.describe()["tensors"]]
    assert names == ["q", "k", "v", "o", "cu_seqlens_q", "cu_seqlens_kv", "sinks", "seed"]
    gradient = problem.replace(outputs="o, lse").gradient(deterministic=True, dlse=True, requires_grad=["sinks"])
    assert gradient.text.endswith(
        'attn.backward @attention_gradient of(@attention) deterministic dlse requires_grad(["sinks"])')
    assert pickle.loads(pickle.dumps(gradient)) == gradient
    assert "dsinks" in [t["name"] for t in gradient.describe()["tensors"]]


def test_answers():
    assert attnc.equiv(attnc.window(8), attnc.causal() & attnc.band(left=7))
    different = attnc.equiv(attnc.causal(), attnc.full())
    assert not different and different.verdict == "different" and different.where["key"] > different.where["row"]
    support = attnc.Problem(attnc.causal(), heads=4, dims=512).gradient(partial_kv=True).supported("cpu")
    assert not support[0] and support[0].reason and "512" in support[0].reason
    explanation = attnc.Problem(attnc.causal() & attnc.window(256), heads=4, dims=128).explain("sm_90a", seqlen_q=1024)
    counts = explanation.counts
    assert counts["visited"] == counts["full"] + counts["partial"] < counts["tiles"]
    assert explanation.svg.startswith("<svg") and "<svg" in explanation._repr_html_()
    assert "warp-specialized" in explanation.schedule
    assert "<svg" in attnc.causal()._repr_html_()
    with pytest.raises(ProblemError, match="`seqlen`"):
        attnc.causal().explain(seqlen=4)


def test_import_is_light():
    """Neither frameworks nor the library are loaded by `import attnc`."""
    code = ("import sys, time; t = time.perf_counter(); import attnc; t = time.perf_counter() - t\n"
            "loaded = {'torch', 'jax', 'numpy'} & set(sys.modules)\n"
            "assert not loaded, loaded\n"
            "assert 'libattnc' not in open('/proc/self/maps').read()\n"
            "print(t)")
    command = [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"]
    times = [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(5)]
    assert min(times) < 0.05, times
