# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of bound arrays where masks and score modifiers combine. Nothing is compiled."""
import attnc
import pytest

A, B, C = (attnc.Shape((2, 8), "i32") for _ in range(3))
DOCUMENTS = '#attn.document, #attn.document<"segment_ids_q_1", "segment_ids_kv_1">'
OF_BOTH = {"segment_ids_q": A, "segment_ids_kv": A, "segment_ids_q_1": B, "segment_ids_kv_1": B}
a, b = attnc.document(ids=A), attnc.document(ids=B)


@pytest.mark.parametrize("make, text, arrays", [
    (lambda: a & b, f"#attn.and<{DOCUMENTS}>", OF_BOTH),
    (lambda: a | b, f"#attn.or<{DOCUMENTS}>", OF_BOTH),
    (lambda: a - b, f"#attn.diff<{DOCUMENTS}>", OF_BOTH),
    (lambda: attnc.heads(a, b), f"#attn.heads<{DOCUMENTS}>", OF_BOTH),
    (lambda: a & attnc.document(ids=A), "#attn.and<#attn.document, #attn.document>",
     {"segment_ids_q": A, "segment_ids_kv": A}),
    (lambda: a & b & b, f'#attn.and<{DOCUMENTS}, #attn.document<"segment_ids_q_1", "segment_ids_kv_1">>', OF_BOTH),
    (lambda: a & (b & attnc.causal()), f"#attn.and<{DOCUMENTS}, #attn.causal>", OF_BOTH),
    (lambda: a & attnc.document(A, B), '#attn.and<#attn.document, #attn.document<"segment_ids_q", "segment_ids_kv_1">>',
     {"segment_ids_q": A, "segment_ids_kv": A, "segment_ids_kv_1": B}),
    # A name that the call gives keeps its meaning, wherever it stands.
    (lambda: a & attnc.document(), '#attn.and<#attn.document<"segment_ids_q_1", "segment_ids_kv_1">, #attn.document>',
     {"segment_ids_q_1": A, "segment_ids_kv_1": A}),
    (lambda: attnc.where("row_end[q] < k") & attnc.rows(end=A),
     '#attn.and<#attn.predicate<"row_end[q] < k">, #attn.row_interval<end = "row_end_1">>', {"row_end_1": A}),
    (lambda: attnc.document("ids") & a, '#attn.and<#attn.document<"ids_rows", "ids_keys">, #attn.document>',
     {"segment_ids_q": A, "segment_ids_kv": A}),
    # Only names of arrays are renamed: `end` is a word of the dialect, too.
    (lambda: attnc.tree(A, A, A) & (attnc.rows(end="e") & attnc.tree(A, A, B)),
     '#attn.and<#attn.tree<"node", "first", "end">, #attn.row_interval<end = "e">, '
     '#attn.tree<"node", "first", "end_1">>', {"node": A, "first": A, "end": A, "end_1": B}),
    (lambda: attnc.prefix(A) & attnc.prefix(B) & attnc.prefix(C),
     '#attn.and<#attn.prefix<"prefix_lengths">, #attn.prefix<"prefix_lengths_1">, #attn.prefix<"prefix_lengths_2">>',
     {"prefix_lengths": A, "prefix_lengths_1": B, "prefix_lengths_2": C}),
    (lambda: attnc.rows("row_end", A), '#attn.row_interval<begin = "row_end", end = "row_end_1">', {"row_end_1": A}),
    (lambda: attnc.rows(A, A) | ~attnc.prefix("row_begin"),
     '#attn.or<#attn.row_interval<begin = "row_begin_1", end = "row_end">, #attn.not<#attn.prefix<"row_begin">>>',
     {"row_begin_1": A, "row_end": A}),
])
def test_apart(make, text, arrays):
    mask = make()
    assert str(mask) == text and mask.arrays == arrays
    assert mask == make() and hash(mask) == hash(make())  # equal construction, equal text
    attnc.parse(text)


def test_scores_apart():
    problem = attnc.Problem(attnc.prefix("bias"), heads=2, dims=16, score=[
        attnc.bias(A, "qk"), attnc.alibi(A), attnc.alibi(B), attnc.score("s + slopes_1[h]")])
    assert ('#attn.bias<"bias_1", qk>, #attn.alibi<"slopes">, #attn.alibi<"slopes_2">, '
            '#attn.score<"s + slopes_1[h]">') in problem.text
    assert problem.arrays == {"bias_1": A, "slopes": A, "slopes_2": B}
