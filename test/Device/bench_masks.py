#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks and score modifiers beside FlexAttention (torch.compile, with its block masks) in one run.

  bench_masks.py BUILD [--out FILE.jsonl] [--commit HASH] [--target T] [--filter TEXT,...] [--quick] [--no-flex]

One JSON line a case and peer; TFLOP/s on visible pairs, which are counted from the definition. A launch of ours has the
kernels that look at run-time arrays in it; what FlexAttention needs ahead of one (`block_mask_ms`) stands apart, and so
does compiling. The two take turns, a figure is the median of the rounds. Then, at a million tokens, what the kernels
ahead of attention take (`metadata`), by the GPU's own clock."""
import math
import os
import re
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # its pool forks, and this process has threads
import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch.nn.attention.flex_attention import create_block_mask, flex_attention  # noqa: E402

import bench  # noqa: E402
from bench import elapsed_ms, emit, parser, short  # noqa: E402

parser.add_argument("--target")
parser.add_argument("--quick", action="store_true", help="2 rounds in place of 7")
parser.add_argument("--no-flex", action="store_true")
args, library = bench.begin()
SAMPLE_MS, ROUNDS = 4, 2 if args.quick else 7
D, H, S = 128, 16, 16384
rng = np.random.default_rng(0)


def cuda(array):
    return torch.as_tensor(np.ascontiguousarray(array, dtype=np.int32), device="cuda")


def documents(tokens, count, seed):
    g = torch.Generator().manual_seed(seed)
    cuts = [0] + sorted((torch.randperm(tokens - 1, generator=g)[: count - 1] + 1).tolist()) + [tokens]
    return np.repeat(np.arange(1, count + 1), np.diff(cuts))


def draft_tree(nodes, prompt, back=64):
    """`nodes` drafts behind a prompt that all see: first[k] <= node[q] < end[k], numbered as a walk visits them, and
    each key's parent. A draft's is one of so many before it."""
    after = np.arange(1, nodes)
    parents = [-1] + rng.integers(np.maximum(0, after - back), after).tolist()
    children = [[] for _ in range(nodes)]
    for i in range(1, nodes):
        children[parents[i]].append(i)
    order, stack = [], [0]
    while stack:
        node = stack.pop()
        order.append(node)
        stack += reversed(children[node])
    size = [1] * nodes
    for i in reversed(range(1, nodes)):
        size[parents[i]] += size[i]
    first = np.arange(nodes)
    end = first + np.array([size[node] for node in order])
    number = np.argsort(order)
    parent = np.concatenate([np.arange(-1, prompt), prompt + number[np.array(parents)[order[1:]]]])
    return first, np.concatenate([np.zeros(prompt), first]), np.concatenate([np.full(prompt, 2**31 - 1), end]), parent


def block_lists(rows, columns):
    """A tenth of the blocks, and the lists that say so."""
    bits = rng.random((rows, columns)) < 0.1
    return bits, np.concatenate([[0], bits.sum(1).cumsum()]), bits.nonzero()[1]


def wanted(name):
    return any(part in name for part in args.filter.split(","))


# name -> mask of ours, arrays, mask of FlexAttention, queries, keys, score modifiers of both
cases = []


def case(name, mask, mod, arrays=None, queries=S, keys=None, score="", score_mod=None, lists=None):
    if wanted(name):
        cases.append(dict(name=name, mask=mask, mod=mod, arrays=arrays or {}, lists=lists or {}, queries=queries,
                          keys=keys or queries, score=score, score_mod=score_mod))


causal = lambda b, h, q, k: k <= q  # noqa: E731
case("causal", "#attn.causal", causal)
case("window 1024", "#attn.band<left = 1023, right = 0>", lambda b, h, q, k: (k <= q) & (q - k < 1024))
case("window 1024 or 64 sinks", "#attn.and<#attn.causal, #attn.or<#attn.prefix<64>, #attn.band<left = 1023>>>",
     lambda b, h, q, k: (k <= q) & ((q - k < 1024) | (k < 64)))
for count in (8, 32, 128):
    ids = documents(32768, count, count)
    t = cuda(ids)
    case(f"{count} documents, causal", "#attn.and<#attn.document, #attn.causal>",
         lambda b, h, q, k, t=t: (t[q] == t[k]) & (k <= q), {"segment_ids_q": ids, "segment_ids_kv": ids}, 32768)
ids32, t32 = documents(32768, 32, 32), cuda(documents(32768, 32, 32))
case("32 documents, window 1024", "#attn.and<#attn.document, #attn.band<left = 1023, right = 0>>",
     lambda b, h, q, k: (t32[q] == t32[k]) & (k <= q) & (q - k < 1024),
     {"segment_ids_q": ids32, "segment_ids_kv": ids32}, 32768)
case("prefix 4096", "#attn.or<#attn.prefix<4096>, #attn.causal>", lambda b, h, q, k: (k <= q) | (k < 4096))
case("chunk 8192", "#attn.and<#attn.chunk<8192>, #attn.causal>", lambda b, h, q, k: (k <= q) & (q // 8192 == k // 8192))
case("dilated 4", "#attn.and<#attn.strided<stride = 4>, #attn.causal>",
     lambda b, h, q, k: (k <= q) & ((q - k) % 4 == 0))
ends = np.minimum(np.arange(S) + rng.integers(256, 4096, S), S)
te = cuda(ends)
case("column intervals", "#attn.and<#attn.causal, #attn.column_interval<end = \"hidden_from\">>",
     lambda b, h, q, k: (k <= q) & (q < te[k]), {"hidden_from": ends})
node, first, end, parent = draft_tree(4096, S - 4096)
tn, tf, tl = cuda(node), cuda(first), cuda(end)
case("tree of 4096 drafts", "#attn.tree<\"node\", \"first\", \"end\">",
     lambda b, h, q, k: (tf[k] <= tn[q]) & (tn[q] < tl[k]), {"node": node, "first": first, "end": end}, 4096, S)
case("tree of 4096 drafts, by parents", "#attn.ancestors<\"parent\">",
     lambda b, h, q, k: (tf[k] <= tn[q]) & (tn[q] < tl[k]), {"parent": parent}, 4096, S)
for size in (128, 64):
    bits, offsets, columns = block_lists(S // size, S // size)
    tb = torch.as_tensor(bits, device="cuda")
    case(f"block map of {size}, 10 %", f"#attn.block_map<\"offsets\", \"columns\", q = {size}, kv = {size}>",
         lambda b, h, q, k, t=tb, n=size: t[q // n, k // n], lists={"offsets": offsets, "columns": columns})
case("causal, softcap", "#attn.causal", causal, score="#attn.softcap<30.0>",
     score_mod=lambda s, b, h, q, k: 30.0 * torch.tanh(s / 30.0))
case("causal, ALiBi", "#attn.causal", causal, score="#attn.alibi",
     score_mod=lambda s, b, h, q, k: s - (q - k) * torch.exp2(-(h + 1) * 8.0 / H))


def text(c, heads=H, dim=D):
    score = f" score([{c['score']}])" if c["score"] else ""
    return (f"attn.problem @bench mask({c['mask']}) layout(bshd) heads({heads}) dims({dim}) dtype(bf16){score} "
            f"outputs(o, lse)")


def compile_case(c):
    start = time.perf_counter()
    try:
        return library.compile(text(c), args.target), (time.perf_counter() - start) * 1e3
    except Exception as e:
        return e, 0


def visible_pairs(c):
    k, pairs = torch.arange(c["keys"], device="cuda")[None, :], 0
    for q in torch.arange(c["queries"], device="cuda").split(1024):
        pairs += int(c["mod"](0, 0, q[:, None], k).sum())
    return pairs


def tensors_of(c, heads=H, dim=D):
    def randn(rows):
        return torch.randn(1, rows, heads, dim, device="cuda", dtype=torch.bfloat16)
    tensors = dict(q=randn(c["queries"]), k=randn(c["keys"]), v=randn(c["keys"]), o=randn(c["queries"]),
                   lse=torch.empty(1, heads, c["queries"], device="cuda"))
    for name, array in c["arrays"].items():
        tensors[name] = cuda(np.asarray(array)[None])
    for name, array in c["lists"].items():  # of all sequences
        tensors[name] = cuda(np.asarray(array))
    return tensors


def run_case(c, compiled):
    kernel, compile_ms = compiled
    if isinstance(kernel, Exception):
        raise kernel
    tensors, pairs = tensors_of(c), visible_pairs(c)
    flops = 4 * pairs * H * D
    bound, stream = kernel.bind(**tensors), torch.cuda.current_stream().cuda_stream
    workspace = bound[1][-1].numel() if bound[2].value else 0
    tensors["o"].fill_(math.nan)
    kernel.launch(bound, stream)
    torch.cuda.synchronize()
    calls = {"attnc": lambda: kernel.launch(bound, stream)}
    facts = {"attnc": dict(compile_ms=round(compile_ms, 1), visible=pairs, workspace_bytes=workspace), "flex": {}}
    if not args.no_flex:
        q, k, v = (tensors[x].transpose(1, 2) for x in "qkv")
        start = time.perf_counter()
        block_mask = create_block_mask(c["mod"], None, None, c["queries"], c["keys"], device="cuda")
        torch.cuda.synchronize()
        facts["flex"] = dict(block_mask_ms=round((time.perf_counter() - start) * 1e3, 2))
        torch._dynamo.reset()
        flex = torch.compile(flex_attention, dynamic=False)
        start = time.perf_counter()
        result = flex(q, k, v, score_mod=c["score_mod"], block_mask=block_mask)
        torch.cuda.synchronize()
        facts["flex"]["compile_ms"] = round((time.perf_counter() - start) * 1e3, 1)
        expected = result.transpose(1, 2).float()
        error = ((tensors["o"].float() - expected).norm() / expected.norm()).item()
        facts["attnc"].update(bench.judged("rel_err_vs_flex", error))
        calls["flex"] = lambda: flex(q, k, v, score_mod=c["score_mod"], block_mask=block_mask)
    counts, samples = {}, {}
    for peer, call in calls.items():
        counts[peer] = max(1, round(SAMPLE_MS / max(elapsed_ms(call, 2), 0.005)))
    for _ in range(ROUNDS):
        for peer, call in calls.items():
            samples.setdefault(peer, []).append(elapsed_ms(call, counts[peer]))
    rates = {}
    for peer, times in samples.items():
        ms = statistics.median(times)
        rates[peer] = flops / ms / 1e9
        emit(peer=peer, case=c["name"], fwd_ms=round(ms, 4), fwd_tf=round(rates[peer], 1), **facts[peer])
    return rates


def rows_of_lists(text, workspace, n):
    """The kernel's schedule, how many query tiles have lists, how many tiles these have, and whether the lists were
    full. At the workspace's end are a row of eight numbers for each query tile, and four numbers
    (`metadata.select_tiles`)."""
    explained = library.explain(text, args.target)
    schedule = re.search(r"^kernel .*?: (#tile.*)$", explained["text"], re.M).group(1)
    words, tile = workspace.view(torch.int32), explained["tile"]["rows"]
    rows = words[-4 - 8 * -(-n // tile):-4].view(-1, 8)
    return schedule, rows.shape[0], int(rows[:, 3].sum()), bool(words[-2])


def metadata():
    """What the kernels ahead of attention take at 2^20 tokens of one head."""
    n = 1 << 20
    def tree(back):
        node, first, end, _ = draft_tree(n, 0, back)
        mask = "#attn.and<#attn.tree<\"node\", \"first\", \"end\">, #attn.causal>"
        return mask, {"node": node, "first": first, "end": end}, {}
    ids, (_, offsets, columns) = documents(n, 1024, 1), block_lists(n // 128, n // 128)
    # A quarter is read by 1023 continuations; and any key follows any of 64 before it.
    forks = np.arange(-1, n - 1)
    forks[n // 4::3 * n // 4096] = n // 4 - 1
    *_, random_parents = draft_tree(n, 0)
    ancestors = "#attn.ancestors<\"parent\">"
    given = {"documents": ("#attn.and<#attn.document, #attn.causal>",
                           {"segment_ids_q": ids, "segment_ids_kv": ids}, {}),
             "tree": tree(n), "tree, deep": tree(64),
             "block map of 128, 10 %": (
                 "#attn.and<#attn.block_map<\"offsets\", \"columns\", q = 128, kv = 128>, #attn.causal>", {},
                 {"offsets": offsets, "columns": columns}),
             "one text continued 1024 times, by parents": (ancestors, {"parent": forks}, {}),
             "tree, deep, by parents": (ancestors, {"parent": random_parents}, {})}
    for name, (mask, arrays, lists) in given.items():
        c = dict(mask=mask, score="", arrays=arrays, lists=lists, queries=n, keys=n)
        room = (" kv_list_capacity(160000)" if "deep, by" in name else
                " kv_list_capacity(110000)" if "deep" in name else
                " kv_list_capacity(266240)" if "continued" in name else "")
        problem = text(c, 1, 64) + room
        kernel = library.compile(problem, args.target)
        tensors = tensors_of(c, 1, 64)
        bound, stream = kernel.bind(**tensors), torch.cuda.current_stream().cuda_stream
        kernel.launch(bound, stream)
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(5):
                kernel.launch(bound, stream)
            torch.cuda.synchronize()
        times = {e.key: round(e.self_device_time_total / e.count, 2) for e in profile.key_averages()
                 if e.count and e.key.startswith("bench")}
        schedule, tiles, visited, overflown = rows_of_lists(problem, bound[1][-1], n)
        emit(peer="attnc", case=f"metadata, 2^20 tokens, {name}", kernels_us=times,
             ahead_us=round(sum(us for key, us in times.items() if key != "bench"), 1),
             workspace_bytes=bound[1][-1].numel(), schedule=schedule, query_tiles=tiles, visited_tiles=visited,
             lists_full=overflown)


emit(peer="env", commit=args.commit, gpu=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda,
     date=time.strftime("%Y-%m-%d"), target=args.target or "the device's own")
with ThreadPoolExecutor(min(14, os.cpu_count())) as pool:
    kernels = list(pool.map(compile_case, cases))
a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in "ab")
elapsed_ms(lambda: a @ b, 20)
emit(peer="cublas", case="matmul8192", tf=round(2 * 8192 ** 3 / elapsed_ms(lambda: a @ b, 50) / 1e9, 1))
table = {}
for c, compiled in zip(cases, kernels):
    try:
        table[c["name"]] = run_case(c, compiled)
    except Exception as e:
        emit(peer="any", case=c["name"], error=short(e))
try:
    if wanted("metadata"):
        metadata()
except Exception as e:
    emit(peer="attnc", case="metadata", error=short(e))
print(f"{'case':32} {'attnc':>7} {'flex':>7}  ratio")
for name, rates in table.items():
    print(f"{name:32} {rates['attnc']:7.1f} {rates.get('flex', math.nan):7.1f} "
          f"{rates['attnc'] / rates.get('flex', math.nan):6.2f}")
bench.end()
