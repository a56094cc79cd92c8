#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of tiles to visit, made on the device: captured in a CUDA graph with attention, and replayed with other arrays.

  lists.py BUILD [--out FILE.jsonl]

Prints one JSON line a check; exit status 1 if one fails."""
import math
import sys

import torch

import bench
from bench import emit

args, library = bench.begin()
S, HEADS, DIM = 20480, 2, 64  # more key tiles than are looked at one by one
q_at, k_at = torch.arange(S, device="cuda")[:, None], torch.arange(S, device="cuda")[None, :]
failures = 0


def randint(low, high, *shape):
    return torch.randint(low, high, shape, device="cuda", dtype=torch.int32)


def documents(ids):
    """Ascending ids with padding between, or any ids in runs."""
    def change(turn):
        cuts = (torch.rand(1, S, device="cuda") < (1 / 300 if turn % 2 else 1 / 3000)).cumsum(1)
        new = cuts + 1 if turn < 2 else cuts * 7919 % 13
        ids.copy_(torch.where(torch.rand(1, S, device="cuda") < 0.01, 0, new))
        return (ids[0, :, None] == ids[0, None, :]) & (ids[0, :, None] != 0) & (k_at <= q_at)
    return change


def columns(end):
    def change(turn):
        end.copy_(k_at + randint(0, (64, 2000, 9000, 1)[turn], 1, S))
        return (k_at <= q_at) & (q_at < end[0])
    return change


def blocks(offsets, entries, q, kv, wrong):
    """As many entries, of other blocks, some twice; `wrong`: some of blocks that are none, and offsets that lead
    out."""
    rows = offsets.numel() - 1
    def change(turn):
        cuts = torch.sort(torch.randint(0, entries.numel() + 1, (rows - 1,), device="cuda")).values
        offsets[1:-1] = cuts.int()
        offsets[0], offsets[-1] = 0, entries.numel()
        entries.copy_(randint(0, -(-S // kv), entries.numel()))
        seen = torch.zeros(rows, -(-S // kv), dtype=torch.bool, device="cuda")
        for row, (begin, end) in enumerate(zip(offsets.tolist(), offsets[1:].tolist())):
            seen[row, entries[begin:end].long()] = True
        if wrong:
            seen[-1] = seen[0] = False
            offsets[0], offsets[-1] = 2**31 - 1, -2**31  # the first and the last list are empty
            for at in range(1, 50):  # in a list of which the rest is as it was
                row = int(torch.searchsorted(offsets[1:-1].contiguous(), at, right=True))
                if 0 < row < rows - 1:
                    entries[at] = (-1, -2**31, 2**31 - 1, -(-S // kv))[at % 4]
            seen[1:-1] = False
            for row in range(1, rows - 1):
                own = entries[int(offsets[row]):int(offsets[row + 1])]
                seen[row, own[(own >= 0) & (own < -(-S // kv))].long()] = True
        at = torch.arange(S, device="cuda")
        # Rows beyond the last see nothing.
        of_row = torch.cat([seen, torch.zeros_like(seen[:1])])[(at // q).clamp(max=rows)]
        return of_row[:, at // kv]
    return change


def far_runs(ids_q, ids_kv):
    """Few rows, and more keys than the kernels look at in one piece: runs of ids, of which the rows have some."""
    def change(turn):
        runs = (torch.rand(ids_kv.shape, device="cuda") < (1e-5, 1e-3, 1e-4, 1e-6)[turn]).cumsum(1)
        ids_kv.copy_(runs * 7919 % 13)
        ids_q.copy_(randint(0, (13, 3, 1, 13)[turn], *ids_q.shape))
        return (ids_q[0, :, None] == ids_kv[0, None, :]) & (ids_q[0, :, None] != 0)
    return change


def trees(parents, cuts):
    """Of each sequence: a text with continuations, keys that follow one of some before them, all the first one, any at
    all."""
    def change(turn):
        visible = torch.zeros(S, S, dtype=torch.bool, device="cuda")
        for begin, end in zip(cuts, cuts[1:]):
            at = torch.arange(end - begin, device="cuda")
            own = (torch.where(at % 700 == 500, 499, at - 1), at - 1 - randint(0, 64, end - begin) % at.clamp(min=1),
                   torch.where(at == 0, -1, 0), randint(-S, S, end - begin))[turn]
            parents[..., begin:end] = own.int()
            for k, parent in enumerate(own.tolist()):
                if 0 <= parent < k:
                    visible[begin + k] = visible[begin + parent]
                visible[begin + k, begin + k] = True
        return visible
    return change


def check(name, mask, arrays, change, queries=S, keys=S, more="", poisoned=(), dim=DIM, layout="bshd"):
    """`poisoned`: keys whose V is NaN, which is nothing to rows that do not see them."""
    global failures
    text = (f"attn.problem @lists mask({mask}) layout({layout}) heads({HEADS}) dims({dim}) dtype(bf16) "
            f"outputs(o, lse){more}")
    kernel = library.compile(text)
    q, k, v = (torch.randn(1, rows, HEADS, dim, device="cuda", dtype=torch.bfloat16) for rows in (queries, keys, keys))
    v[:, list(poisoned)] = math.nan
    clean = v.nan_to_num(0.0)
    o, lse = torch.empty_like(q), torch.empty(1, HEADS, queries, device="cuda")
    tensors = dict(q=q, k=k, v=v, o=o, lse=lse)
    bound = kernel.bind(**(tensors if layout == "bshd" else {name: t[0] for name, t in tensors.items()}), **arrays)
    change(0)
    kernel.launch(bound, torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel.launch(bound, torch.cuda.current_stream().cuda_stream)
    worst, shares = 0.0, []
    for turn in range(4):
        visible = change(turn)
        shares.append(round(visible.float().mean().item(), 4))
        o.fill_(math.nan), lse.fill_(math.nan)
        bound[1][-1].fill_(255)  # no list of the replay before
        graph.replay()
        torch.cuda.synchronize()
        for h in range(HEADS):
            s = (q[0, :, h].float() @ k[0, :, h].float().T * dim ** -0.5).masked_fill_(~visible, -math.inf)
            want_lse = torch.logsumexp(s, -1)
            p = torch.exp(s - want_lse[:, None]).nan_to_num_(0.0)
            want, spoilt = p @ clean[0, :, h].float(), visible[:, list(poisoned)].any(1)
            error = (o[0, :, h].float() - want)[~spoilt].norm() / want[~spoilt].norm().clamp(min=1e-6)
            empty = torch.isneginf(want_lse)
            off = (lse[0, h] - want_lse)[~empty].abs().amax() if (~empty).any() else torch.zeros(())
            right = (torch.isneginf(lse[0, h][empty]).all() and (o[0, :, h][empty] == 0).all() and
                     o[0, :, h][spoilt].isnan().all())
            worst = (max(worst, error.item() if right else math.inf, off.item()) if not math.isnan(error + off) else
                     math.inf)
            del s, p
    ok = worst < 0.01
    failures += not ok
    emit(check=f"lists replayed with other arrays: {name}", ok=ok, worst=worst, visible=shares)


torch.backends.cuda.matmul.allow_tf32 = False
ids = randint(0, 3, 1, S)
for room in ("", " kv_list_capacity(64)"): # or hardly any
    check("documents" + room, "#attn.and<#attn.document, #attn.causal>", dict(segment_ids_q=ids, segment_ids_kv=ids),
          documents(ids), more=room)
FAR = 2_200_000
near, far = randint(0, 3, 1, 100), randint(0, 3, 1, FAR)
check("2.2 million keys", "#attn.document", dict(segment_ids_q=near, segment_ids_kv=far), far_runs(near, far), 100, FAR,
      " kv_list_capacity(2200000)")
end = randint(0, S, 1, S)
check("column intervals", '#attn.and<#attn.causal, #attn.column_interval<end = "end">>', dict(end=end), columns(end))
for q, kv, rows, wrong in ((128, 128, S // 128, False), (100, 70, S // 100 - 3, False), (256, 64, S // 256 + 2, True),
                           (256, 384, S // 256 + 2, True), (384, 640, S // 384 - 1, False)):
    offsets, entries = randint(0, 1, rows + 1), randint(0, 1, rows * (S // kv) // 8)
    mask, arrays = f'#attn.block_map<"offsets", "entries", q = {q}, kv = {kv}>', dict(offsets=offsets, entries=entries)
    change = blocks(offsets, entries, q, kv, wrong)
    name = f"block map of {q} x {kv}" + (", wrong entries" if wrong else "")
    check(name, mask, arrays, change)
    if (q, kv) == (256, 384):
        check(name + " kv_list_capacity(64)", mask, arrays, change, more=" kv_list_capacity(64)")
    if (q, kv) == (128, 128):
        check(name + ", d 128", mask, arrays, change, dim=128)
        check(name + ", causal, NaN in V", f"#attn.and<{mask}, #attn.causal>", arrays,
              lambda turn: change(turn) & (k_at <= q_at), poisoned=(5, 4000, 4001, 20000))
# Few long sequences, which all blocks number together, among others.
for layout, cuts in (("bshd", [0, S]), ("thd", [0, 480, 480, 8000, S - 4000, S])):
    parents = randint(0, 1, *((1, S) if layout == "bshd" else (S,)))
    arrays = dict(parents=parents)
    if layout == "thd":
        arrays |= {f"cu_seqlens_{side}": torch.tensor(cuts, dtype=torch.int32, device="cuda") for side in ("q", "kv")}
    check(f"trees by parents, {layout}", '#attn.ancestors<"parents">', arrays, trees(parents, cuts), layout=layout,
          more=" kv_list_capacity(60000)")
sys.exit(failures > 0)
