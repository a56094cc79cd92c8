# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The matrix of kernels that are compiled for GPUs without one: `cases()`, and the problem of each.

Every mask with every head dim, on Hopper and on one of three chips in turn; packed
layouts, float16, d_qk != d_v, a chip with little shared memory and, on two chips,
score modifiers and the rarer masks in samples. And segments: each kind of mask,
with and without a window, with all results and with few. And short sequences, streamed.
"""
DIMS = (64, 80, 96, 128, 192, 256)
CHIPS = ("sm_90a", "sm_80", "sm_80:90", "sm_80:100")
SMALL_CHIP = "sm_80:86"  # 99 KB of shared memory instead of 163 or 227
MASKS = {
    "full": "#attn.full",
    "causal": "#attn.causal",
    "bottom_right": "#attn.causal<bottom_right>",
    "window": "#attn.and<#attn.band<left = 127>, #attn.causal>",
    "sink_window": "#attn.and<#attn.or<#attn.prefix<4>, #attn.band<left = 127, right = 0>>, #attn.causal>",
    "prefix_lm": '#attn.or<#attn.prefix<"prefix_lengths">, #attn.causal>',
    "document": "#attn.and<#attn.document, #attn.causal>",
}
SAMPLED = {  # head dims and chips take turns
    "chunk": "#attn.and<#attn.chunk<8192>, #attn.causal>",
    "dilated": "#attn.and<#attn.strided<stride = 6>, #attn.causal>",
    "far": "#attn.diff<#attn.causal, #attn.or<#attn.prefix<4>, #attn.band<left = 127>>>",
    "hole": "#attn.not<#attn.band<left = 127, right = 127>>",
    "global": "#attn.or<#attn.global_rows<64>, #attn.prefix<64>, #attn.band<left = 127, right = 127>>",
    "rows": '#attn.or<#attn.row_interval<end = "a">, #attn.row_interval<begin = "b", end = "c", per_head>>',
    "flash_mask": '#attn.not<#attn.or<#attn.column_interval<begin = "a", end = "b">, '
                  '#attn.column_interval<begin = "c", end = "d", per_kv_head>>>',
    "tree": '#attn.tree<"node", "first", "end">',
    "ancestors": '#attn.ancestors<"parent">',
    "of_heads": "#attn.heads<#attn.causal, #attn.band<left = 127, right = 0>>",
    "predicate": '#attn.predicate<"q >= k && (q - k) % 48 < 16 || kind[q] == kind_kv[k] && abs(q - k) < 99">',
    "blocks": '#attn.and<#attn.block_map<"offsets", "columns", q = 384, kv = 384>, #attn.causal>',
    "odd_blocks": '#attn.block_map<"offsets", "columns", q = 100, kv = 70, per_head>',
    "lists": '#attn.and<#attn.block_list<"lists", rows = 64, keys = 64>, #attn.causal>',
    "odd_lists": '#attn.block_list<"lists", rows = 16, keys = 32, per_head>',
    "question": '#attn.and<#attn.causal, #attn.or<#attn.prefix<"lengths">, #attn.document>>',
    "grid": '#attn.predicate<"abs(q / 64 - k / 64) <= 12 && abs(q % 64 - k % 64) <= 20">',  # has lists, without arrays
    "lists_of_32": '#attn.and<#attn.block_list<"lists", rows = 32, keys = 64>, #attn.causal>',
    "pooled": "#attn.pooled<length = 32, stride = 16>",
    "lists_of_1": '#attn.and<#attn.block_list<"lists", rows = 1, keys = 64>, #attn.causal>',
}
DIVIDED = {  # masks whose rows take a division
    "chunk100": "#attn.chunk<100>",
    "chunk48_causal": "#attn.and<#attn.causal, #attn.chunk<48>>",
}
MODIFIED = {  # masks with something done to scores
    "softcap": ("causal", "#attn.softcap<30.0>"),
    "alibi": ("causal", "#attn.alibi"),
    "biases": ("causal", '#attn.head_scale<"t">, #attn.relative_bias<"table", 128>, #attn.bias<"bias", bhqk>'),
    "learned": ("causal", '#attn.bias<"pairs", hqk>, #attn.relative_bias<"table", 128>, '
                          '#attn.score<"gate[h] * tanh(s) - log(1.0 + (q - k) / 64.0)">'),
    "bias": ("causal", '#attn.bias<"bias", hqk>'),
    "learned_bias": ("causal", '#attn.bias<"bias", hqk>'),
    "learned_slopes": ("causal", '#attn.alibi<"slopes">'),
    "learned_table": ("causal", '#attn.relative_bias<"table", 128>'),
    "learned_both": ("causal", '#attn.head_scale<"t">, #attn.relative_bias<"table", 128, bottom_right>'),
    "softcap_bias": ("causal", '#attn.softcap<30.0>, #attn.relative_bias<"table", 128>'),
    "softcap_alibi": ("full", "#attn.softcap<50.0>, #attn.alibi<bottom_right>"),
}
LEARNED_BY_HEAD = {"learned_slopes": '"slopes"', "learned_table": '"table"', "learned_both": '"t", "table"'}
FORWARD_MODIFIED = ("softcap", "alibi", "biases", "learned", "softcap_alibi")  # the others in backward passes
SEGMENTS = {  # masks, and how many segments with what else
    "full": ("#attn.full", "segments(4)"),
    "causal": ("#attn.causal", "segments(64) maps tiles(128)"),
    "causal_alone": ("#attn.causal", "segments(64)"),
    "bottom_right": ("#attn.causal<bottom_right>", "segments(2048) maps tiles(64)"),
    "window": ("#attn.band<left = 1023, right = 0>", "segments(256) tiles(128)"),
    "aligned_window": ("#attn.band<left = 1023, right = 0, bottom_right>", "segments(256) maps tiles(16)"),
    "both_sides": ("#attn.band<left = 7, right = 9>", "segments(1) maps tiles(256)"),
}


STREAMED = {  # short sequences: a bound on queries and one on keys
    "short_full": ("full", "1, 16"),
    "short_causal": ("bottom_right", "4, 16"),
    "short_window": ("window", "16"),
    "short_alibi": ("alibi", "1, 40"),
    "short_grads": ("full", "1, 16"),  # and gradients
    "alone_grads": ("full", "1, 16"),  # of heads with keys of their own: on strips
    "few_rows_grads": ("bottom_right", "4, 16"),
    "sides_grads": ("full", "1, 4"),  # kv heads side by side in a tile
    "three_warps_grads": ("causal", "9, 40"),
    "odd_rows_grads": ("causal", "5, 24"),
    "five_warps_grads": ("full", "18, 72"),
    "modified_grads": ("softcap_alibi", "2, 16"),
}
LARGE = {  # tiles of up to 128 rows and keys, and Hopper's that bounds fill
    "one_query_grads": ("full", "1, 128"),
    "two_warps_grads": ("full", "8, 64"),
    "alone_48_grads": ("causal", "48, 128"),
    "six_warps_grads": ("causal", "24, 90"),
    "eight_warps_grads": ("causal", "32, 128"),
    "large_softcap_grads": ("softcap", "24, 120"),
    "bound_100": ("full", "100"),
    "bound_150": ("full", "150"),
    "bound_180": ("full", "180"),
    "bound_200": ("causal", "200"),
}
BOUNDED = STREAMED | LARGE


SPLIT = {  # few queries, whose keys are shared out; the kernel that merges counts too
    "few_full": "full",
    "few_causal": "bottom_right",
    "few_sinks": "sink_window",
}


LISTED = {  # the rows of a listed tile, by head dim: those of the schedule
    "sm_90a": {64: 192, 128: 128, 256: 128},
    "sm_80": {64: 128, 128: 128, 256: 64},
}


# Backward passes, with and without a fixed order of sums.
BACKWARD = ("full", "causal", "sink_window", "softcap", "window")


DROPPED = {  # masks with dropout, and bounds or typical lengths
    "dropped": ("causal", ""),
    "dropped_full": ("full", ""),
    "dropped_softcap": ("softcap", ""),
    "dropped_alibi": ("alibi", ""),
    "dropped_short_grads": ("causal", " max_seqlen(4, 16)"),
    "dropped_strip_grads": ("full", " max_seqlen(1, 4)"),
    "dropped_few": ("full", " expected_seqlen(16, 32768)"),
    "dropped_chunk100": ("chunk100", ""),
    "dropped_chunk48_causal": ("chunk48_causal", ""),
    "dropped_sink_window": ("sink_window", ""),
}


FIRST = {  # plain problems whose first choice has to fit, and what they say of lengths
    "first": "",
    "first_short": " expected_seqlen(512)",
    "first_long": " expected_seqlen(16384)",
}
# Of packed ones, what looks at all keys in one go.
FIRST_OF_BOUNDS = {f"first_of_{most}": f" max_seqlen({most})" for most in (96, 128, 144, 192, 224, 240, 256)}


LOOKED_AT = ("full", "causal", "window", "sink_window", "dropped", "dropped_full")
PASSED = ((144, 128), (192, 64), (192, 128), (256, 64), (256, 128))

COMPRESSED = {
    "pool64": "mean length(64) stride(64) layout(thd) heads(8) dims(128)",
    "pool32": "mean length(32) stride(16) layout(bshd) heads(4) dims(192, 128)",
    "means512": "mean k_only length(512) stride(512) layout(thd) heads(4) dims(128)",
}
COMBINED = {  # an op, and the backward op of another, which is named @of
    "combine3": ("attn.combine @{0} sigmoid branches(3) layout(thd) heads(32) dim(128) dtype({1})\n"),
    "combine2": ("attn.combine @{0} uniform branches(2) layout(bshd) heads(16) dim(72) dtype({1})\n"),
    "gates": ("attn.combine @of sigmoid branches(3) layout(thd) heads(32) dim(128) dtype({1})\n"
              "attn.combine_backward @{0} of(@of)\n"),
    "sums": ("attn.add @{0} parts(3) layout(thd) heads(32) dim(128) dtype({1}) from(f32)\n"),
    "pool64_grads": ("attn.compress @of mean length(64) stride(64) layout(thd) heads(8) dims(128) dtype({1})\n"
                     "attn.compress_backward @{0} of(@of) add(2)\n"),
    "pool32_grads": ("attn.compress @of mean length(32) stride(16) layout(bshd) heads(4) dims(192, 128) dtype({1})\n"
                     "attn.compress_backward @{0} of(@of)\n"),
}
SELECTED = {
    "tiles": "length(64) stride(64) block(64) count(16) first(1) local(2) rows(64) layout(thd) heads(32, 8) dim(128)",
    "tokens": "length(32) stride(16) block(64) count(16) first(1) local(2) rows(1) layout(thd) heads(64, 4) dim(128)",
    "group3": "length(16) stride(8) block(24) count(32) first(0) local(1) rows(8) layout(bshd) heads(6, 2) dim(72)",
    "group20": "length(32) stride(16) block(32) count(64) first(1) local(2) rows(1) layout(bhsd) heads(40, 2) dim(64)",
    "group64": "length(64) stride(64) block(64) count(16) first(1) local(2) rows(64) layout(thd) heads(64, 1) dim(128)",
    "group128": "length(32) stride(16) block(64) count(1024) first(0) local(1) rows(128) layout(thd) heads(128, 1) "
                "dim(256)",
    "group1": "length(128) stride(1) block(64) count(8) first(1) local(2) rows(64) layout(sbhd) heads(8) dim(256)",
    "mha": "length(64) stride(64) block(64) count(16) first(1) local(2) rows(64) layout(thd) heads(16) dim(128)",
}
SCORED = {  # by other scorers than prob
    "moba": "mean_key block(512) count(3) first(0) local(1) rows(64) per_head layout(thd) heads(64, 4) dim(128)",
    "moba_tokens": "mean_key block(128) count(12) first(0) local(1) rows(1) per_head layout(bshd) heads(32, 8) dim(64)",
    "mean_key20": "mean_key block(64) count(64) first(1) local(2) rows(64) layout(thd) heads(40, 2) dim(192)",
    "msa": "max block(128) count(16) first(0) local(1) rows(64) per_head layout(thd) heads(4, 1) dim(128)",
    "msa_tokens": "max block(128) count(16) first(0) local(1) rows(1) per_head layout(bshd) heads(8, 1) dim(64)",
    "max3": "max block(16) count(32) first(0) local(1) rows(16) layout(bshd) heads(6, 2) dim(72)",
    "max20": "max block(24) count(64) first(1) local(2) rows(1) layout(bhsd) heads(40, 2) dim(64)",
    "max64": "max block(64) count(16) first(1) local(2) rows(64) layout(thd) heads(64, 1) dim(128)",
    "max_alone": "max block(20) count(16) first(1) local(2) rows(20) layout(thd) heads(8) dim(256)",
}


def cases():
    """(chip, mask, layout, d_qk, d_v, dtype), each once, those that take longest first."""
    chosen = set()
    for d in DIMS:
        chosen |= {("sm_90a", mask, "bshd", d, d, "bf16") for mask in MASKS}
        chosen |= {(chip, "causal", "thd padded", d, d, "bf16") for chip in (*CHIPS, SMALL_CHIP)}
        chosen |= {(SMALL_CHIP, mask, "bshd", d, d, "bf16") for mask in ("causal", "sink_window")}
        most = ("sm_90a", "sm_80:90")[: 2 if d in (64, 128, 256) else 1]
        chosen |= {(chip, mask, "bshd", d, d, "f16") for chip in most for mask in ("causal", "document")}
        chosen |= {(chip, mask, "bshd", d, d, "bf16") for chip in most for mask in FORWARD_MODIFIED}
    for i, mask in enumerate(MASKS):  # one program for three chips, which differ in how registers are given out
        for j, d in enumerate(DIMS):
            chosen.add((CHIPS[1 + (i + j) % 3], mask, "bshd", d, d, "bf16"))
    for i, mask in enumerate(SAMPLED):
        for j, d in enumerate((64, 128, 256)):
            chosen.add((("sm_90a", "sm_80:90")[(i + j) % 2], mask, "bshd", d, d, "bf16"))
    for i, mask in enumerate(("document", "tree", "rows", "flash_mask")):  # lists of tiles of packed sequences
        chosen.add((("sm_90a", "sm_80:90")[i % 2], mask, "thd padded", (64, 128)[i // 2], (64, 128)[i // 2], "bf16"))
    for mask in SPLIT:
        for d in (64, 128, 256):
            chosen |= {(chip, mask, "bshd", d, d, "bf16") for chip in ("sm_90a", "sm_80")}
    for i, mask in enumerate(STREAMED):
        for j, d in enumerate((8, 64, 80, 128, 256, 320, 512)):
            chosen.add((CHIPS[(i + j) % 4], mask, "thd padded", d, d, ("bf16", "f16")[i % 2]))
    for i, mask in enumerate(LARGE):
        chosen |= {("sm_90a", mask, layout, d, d, "bf16")
                   for layout, d in (("thd padded", (64, 128)[i % 2]), ("bshd", 128))}
    # Known, left out: where a lane holds numbers of several keys, the compiler has them in memory, a stack frame of 16
    # to 128 bytes.
    chosen = {case for case in chosen if case[1] != "alone_grads" or case[3] in (8, 128, 512)}
    chosen.add(("sm_90a", "alone_grads", "bshd", 128, 128, "bf16"))
    # Known, left out: beyond 128 columns five warps are no tile of the sequence's own, and the usual kernel of this one
    # spills 8 bytes.
    chosen.discard(("sm_80:90", "five_warps_grads", "thd padded", 256, 256, "bf16"))
    for chip, tiles in LISTED.items():
        chosen |= {(chip, "causal", "thd listed", d, d, "bf16") for d in tiles}
    for backward in ("", " backward"):
        chosen |= {("sm_90a", "causal", "thd by class" + backward, d, d, "bf16") for d in (64, 128)}
    # Gradients of the short ones up to 100, which have nothing to fall back to.
    chosen |= {("sm_90a", mask, "thd by class of 100 backward", d, d, "bf16")
               for mask in ("full", "window", "softcap") for d in (64, 128)}
    chosen.add(("sm_80", "full", "thd by class backward", 64, 64, "f16"))
    for chip in (*CHIPS, SMALL_CHIP):
        chosen.add((chip, "causal", "bshd", 192, 128, "bf16"))
        chosen.add((chip, "window", "thd", 64, 64, "f16"))
        chosen.add((chip, "causal", "thd padded", 192, 128, "f16"))
    for i, mask in enumerate(BACKWARD):
        for j, d in enumerate((64, 128, 192, 256)):
            order = ("", " deterministic")[(i + j) % 2]
            chosen |= {("sm_90a", mask, "bshd backward" + order, d, d, "bf16")}
            if d != 192:
                chosen |= {(chip, mask, "bshd backward", d, d, "bf16") for chip in ("sm_80", SMALL_CHIP)[j % 2:][:1]}
    for mask in ("full", "causal"):
        for d in (64, 128):
            chosen.add(("sm_90a", mask, "thd padded backward", d, d, "f16"))
        chosen.add(("sm_90a", mask, "thd padded backward deterministic", 256, 256, "bf16"))
    # With queries at rest, and tests that read arrays.
    for i, mask in enumerate(("document", "tree", "ancestors", "odd_blocks")):
        for j, d in enumerate((96, 128, 192, 256)):
            chosen.add(("sm_90a", mask, ("bshd", "thd padded")[(i + j) % 2] + " backward deterministic", d, d, "bf16"))
    # What is added to scores, of head dims that warpgroups cannot share out too; arrays' gradients beyond 192 columns.
    for mask, layout, d, e in (("alibi", "bshd", 64, 64), ("alibi", "bshd", 136, 136),
                               ("alibi", "thd padded", 192, 128), ("alibi", "bshd", 256, 256),
                               ("bias", "bshd", 192, 192), ("bias", "sbhd", 256, 256),
                               ("softcap_bias", "bshd", 192, 128), ("softcap_bias", "bshd", 256, 256),
                               ("dropped_alibi", "thd padded", 128, 128),
                               ("learned_bias", "bshd", 192, 192), ("learned_bias", "bshd", 256, 256)):
        chosen.add(("sm_90a", mask, layout + " backward", d, e, "bf16"))
    for chip, d in (("sm_90a", 64), ("sm_90a", 128), ("sm_80", 256), (SMALL_CHIP, 256)):
        chosen.add((chip, "learned", "bshd backward", d, d, "bf16"))
    # Tiles by residue.
    for j, d in enumerate((64, 128, 192, 256)):
        chosen.add(("sm_90a", "dilated", ("bshd", "thd padded")[j % 2], d, d, "bf16"))
        chosen.add(("sm_90a", "dilated", ("bshd backward", "thd padded backward deterministic")[j % 2], d, d, "bf16"))
    chosen |= {("sm_80", "dilated", "thd padded backward", d, d, "f16") for d in (64, 128)}
    # Predicates with lists of tiles, which gradients of dK and dQ have of their own.
    chosen |= {("sm_90a", "grid", layout, d, d, "bf16")
               for layout in ("bshd backward", "thd padded backward deterministic") for d in (64, 128, 256)}
    # Lists of one width, which a backward pass transposes.
    chosen |= {(chip, "lists", layout, d, d, "bf16") for chip, layout, d in (
        ("sm_90a", "thd padded", 128), ("sm_90a", "bshd backward", 64), ("sm_90a", "bshd backward deterministic", 128),
        ("sm_90a", "thd padded backward", 128), ("sm_90a", "thd padded backward", 256),
        ("sm_80", "thd padded backward", 128), ("sm_80", "bshd backward", 64))}
    # Branches of sparse attention, whose gradients of q are summed.
    for d in (64, 128, 192, 256):
        chosen |= {("sm_90a", "pooled", "thd backward delta float32_dq", d, d, "bf16"),
                   ("sm_90a", "window", "thd backward delta float32_dq float32_dkv add_dq", d, d, "bf16"),
                   ("sm_90a", "lists", "thd backward delta float32_dkv add_dq", d, d, "bf16")}
    chosen |= {("sm_90a", "causal", "bshd backward deterministic delta float32_dq add_dq", 128, 128, "f16"),
               ("sm_90a", "lists_of_1", "thd backward delta float32_dkv add_dq", 128, 128, "bf16"),
               ("sm_80", "window", "bshd backward delta add_dq", 128, 128, "bf16")}
    for i, mask in enumerate(DROPPED):
        for j, d in enumerate((64, 128, 256)):
            layout = ("bshd", "thd padded")[(i + j) % 2]
            chosen |= {(chip, mask, layout, d, d, ("bf16", "f16")[j % 2])
                       for chip in ("sm_90a", "sm_80")[: 1 + (i // 2 + j) % 2] if mask != "dropped_alibi"}
    for i, mask in enumerate(("dropped", "dropped_full", "dropped_softcap")):
        for j, d in enumerate((64, 128, 256)):
            layout = ("bshd backward", "thd padded backward", "bshd backward deterministic")[(i + j) % 3]
            chosen |= {(chip, mask, layout, d, d, "bf16") for chip in ("sm_90a", "sm_80")}
    for hint in FIRST:
        chosen |= {("sm_90a", mask, f"{layout} {hint}", d, d, "bf16") for mask in ("full", "causal")
                   for layout in ("bshd", "thd padded") for d in (64, 128)}
    chosen |= {("sm_90a", "full", f"thd {hint}", d, d, "bf16") for hint in FIRST_OF_BOUNDS for d in (64, 128)}
    # Gradients of sequences that are one tile, which have nothing to fall back to.
    for i, mask in enumerate(LOOKED_AT):
        chosen |= {("sm_90a", mask, f"{('thd', 'thd padded')[(i + j) % 2]} backward looks {most}", d, d,
                    ("bf16", "f16")[i % 2])
                   for j, most in enumerate((80, 112 if mask in DROPPED else 128))
                   for d in ((64,) if mask == "sink_window" else (64, 128))}
        for j, (most, d) in enumerate(PASSED):  # keys pass by
            if mask == "sink_window" and d > 64:  # too costly a mask
                continue
            if (most == 144 or (most == 192 and (d == 64 or mask in ("full", "causal"))) or
                    (most == 256 and mask not in DROPPED)):
                chosen.add(("sm_90a", mask, f"{('thd', 'thd padded')[(i + j) % 2]} backward looks {most}", d, d,
                            ("bf16", "f16")[(i + j // 2) % 2]))
    chosen |= {("sm_90a", "full", "bshd backward looks 256", 96, 96, "bf16"),
               ("sm_90a", "dropped", "thd backward looks 250", 112, 112, "bf16"),
               ("sm_90a", "causal", "bshd backward looks 208", 128, 64, "bf16"),
               ("sm_90a", "window", "thd padded backward looks 192", 128, 128, "f16"),
               ("sm_90a", "dropped_chunk48_causal", "thd backward looks 160", 64, 64, "bf16"),
               ("sm_90a", "dropped_chunk100", "thd padded backward looks 200", 96, 96, "f16"),
               ("sm_90a", "dropped_sink_window", "thd padded backward looks 192", 64, 64, "bf16"),
               ("sm_90a", "chunk100", "thd backward looks 192", 128, 128, "f16"),
               ("sm_90a", "chunk100", "thd padded backward looks 256", 112, 112, "f16")}
    of_pieces = ("thd pieces", "thd pieces partial", "thd pieces backward deterministic partial_kv add_dq float32_dkv")
    single = "thd single pieces backward deterministic partial_kv add_dq float32_dq float32_dkv"
    chosen |= {("sm_90a", mask, single, d, d, "bf16") for d in (64, 128, 256)
               for mask in ("full", "causal", "bottom_right", "window", "chunk100")}
    chosen |= {("sm_90a", "causal", single, 192, 128, "bf16"), ("sm_90a", "dropped", single, 128, 128, "bf16"),
               ("sm_80", "causal", single, 128, 128, "f16")}
    chosen |= {("sm_90a", mask, layout, d, d, "bf16") for layout in of_pieces for d in (64, 128, 256)
               for mask in ("full", "causal", "window", "sink_window", "document")}
    chosen |= {("sm_80", "causal", layout, d, d, "f16") for layout in of_pieces for d in (64, 128, 256)}
    chosen |= {("sm_90a", "dropped", layout, d, d, "bf16") for layout in of_pieces for d in (64, 128)}
    chosen |= {("sm_90a", "causal", layout, 192, 128, "bf16") for layout in of_pieces}
    chosen |= {("sm_90a", mask, f"{layout} add_array_grads", d, d, "bf16") for layout in (of_pieces[2], single)
               for mask in LEARNED_BY_HEAD for d in (64, 128, 256)}
    chosen |= {("sm_80", mask, f"{of_pieces[2]} add_array_grads", d, d, "f16") for mask in LEARNED_BY_HEAD
               for d in (64, 128, 256)}
    chosen = sorted(chosen, key=lambda case: -(case[3] + case[4]) * (1 + (case[1] == "sink_window")))
    rows = [(chip, "rows", "rows", d, parts, dtype) for chip in CHIPS[:2]
            for d, parts, dtype in ((128, 1, "bf16"), (64, 3, "f16"), (1, 1, "f32"))]
    rows += [(chip, shape, kind, 0, 0, "bf16")
             for kind, shapes in (("compress", COMPRESSED), ("select", SELECTED | SCORED),
                                  ("combined", COMBINED))
             for shape in shapes for chip in CHIPS[:2]]
    return chosen + rows + [(chip, mask, "segments", 0, 0, "i32") for chip in CHIPS for mask in SEGMENTS]


def name_of(case):
    chip, mask, layout, d, e, dtype = case
    return f"{mask}_{layout}_{d}_{e}_{dtype}_on_{chip}".replace(" ", "_").replace(":", "_")


def text_of(case):
    """The problem of a case."""
    chip, mask, layout, d, e, dtype = case
    if layout == "segments":
        return "attn.segments @{} mask({}) {}\n".format(name_of(case), *SEGMENTS[mask])
    if layout == "combined":
        return COMBINED[mask].format(name_of(case), dtype)
    if layout in ("compress", "select"):
        prob = "prob " if mask in SELECTED else ""
        return f"attn.{layout} @{name_of(case)} {prob}{(COMPRESSED | SELECTED | SCORED)[mask]} dtype({dtype})\n"
    if layout == "rows":
        return (f"attn.gather_rows @{name_of(case)} parts({e}) heads(8) dim({d}) dtype({dtype})" +
                (" from(f32)" if e > 1 else "") + "\n")
    hint = (" expected_seqlen(16, 32768)" if mask in SPLIT else
            f" max_seqlen({BOUNDED[mask][1]})" if mask in BOUNDED else "")
    if mask in DROPPED:
        mask, hint = DROPPED[mask]
        hint = ' dropout(0.1, "seed")' + hint
    layout, first = (layout.rsplit(" ", 1) if "first" in layout else (layout, None))
    hint = (FIRST | FIRST_OF_BOUNDS).get(first, hint)
    if layout == "thd listed":
        layout, hint = "thd", f" tiles({LISTED[chip][d]})"
    if layout == "thd pieces partial":
        layout, hint = "thd pieces", hint + " partial(in, out)"
    if layout.startswith("thd single pieces"):
        layout, hint = layout.replace("single ", ""), hint + " single_pieces keep_padding"
    layout, looks, most = layout.partition(" looks ")
    hint += f" max_seqlen({most})" if looks else ""
    layout, backward, order = layout.partition(" backward")
    if mask == "learned_bias":
        order += ' requires_grad(["bias"])'
    if mask in LEARNED_BY_HEAD:
        order += f" requires_grad([{LEARNED_BY_HEAD[mask]}])"
    if mask == "learned":
        hint, order = ' sink("sinks")', order + ' requires_grad(["pairs", "table", "gate", "sinks"])'
    if layout == "thd by class":
        layout, hint = "thd", " expected_seqlen(4)"
    if layout == "thd by class of 100":
        layout, hint = "thd", " expected_seqlen(25, 100)"
    mask = BOUNDED[mask][0] if mask in BOUNDED else SPLIT.get(mask, mask)
    mask, modifiers = MODIFIED.get(mask, (mask, ""))
    heads = 16 if case[1].startswith("alone") or looks else 4
    text = (f"attn.problem @{name_of(case)} mask({(MASKS | SAMPLED | DIVIDED)[mask]}) layout({layout}) "
            f"heads(16, {heads}) dims({d}, {e}) dtype({dtype}) score([{modifiers}]){hint}\n")
    if "_grads_" in name_of(case):
        text += f"attn.backward @grads of(@{name_of(case)})\n"
    if backward:
        forward = text.replace("@" + name_of(case), "@p").rstrip()  # which is a case of its own
        text = f"{forward} {{sym_visibility = \"private\"}}\nattn.backward @{name_of(case)} of(@p){order}\n"
    return text
