# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attn.select on the CPU against float64: lists of packed and dense sequences by each scorer, of kv heads and of query
heads, ties, NaN keys, tiles of many sizes."""
import ctypes

import numpy as np
import pytest
from attnc import _library
from attnc.problem import Kernel

NEAR = 1e-4  # importances closer than this may be ranked otherwise in float32


class Made:
    name = "select"


def compiled(words, **clauses):
    text = f"attn.select @select {words} " + " ".join(f"{name}({value})" for name, value in clauses.items())
    handle = ctypes.c_void_p()
    _library.check(_library.library().attnLower(text.encode(), b"select", b"cpu", ctypes.byref(handle)))
    kernel = Kernel(handle, Made)
    kernel.build()
    return kernel


def windows_of(tokens, length, stride):
    return 0 if tokens < length else (tokens - length) // stride + 1


class Case:
    """A selection, and the lists of one sequence by its definition."""

    def __init__(self, heads, kv_heads, dim, length, stride, block, count, first, local, rows, scorer="prob",
                 per_head=False):
        self.heads, self.kv_heads, self.dim = heads, kv_heads, dim
        self.length, self.stride, self.block, self.rows = length, stride, block, rows
        self.count, self.first, self.local = count, first, local
        self.scorer, self.per_head, self.lists = scorer, per_head, heads if per_head else kv_heads
        self.width = count + max(rows // block - 1, 0)

    @staticmethod
    def of(scorer, heads, kv_heads, dim, block, count, first, local, rows, per_head=False):
        """Of mean keys of blocks, or of keys."""
        length = 1 if scorer == "max" else block
        return Case(heads, kv_heads, dim, length, length, block, count, first, local, rows, scorer, per_head)

    def kernel(self, layout, dtype="f32"):
        windows = dict(length=self.length, stride=self.stride) if self.scorer == "prob" else {}
        return compiled(self.scorer + " per_head" * self.per_head, **windows, block=self.block, count=self.count,
                        first=self.first, local=self.local, rows=self.rows, layout=layout,
                        heads=f"{self.heads}, {self.kv_heads}", dim=self.dim, dtype=dtype)

    def tensors(self, q, k, lse, cu=None, cu_c=None):
        """What a launch is given, by name."""
        given = {"q": q, "k" if self.scorer == "max" else "compressed_k": k}
        if self.scorer == "prob":
            given["lse"] = lse
        if cu is not None:
            given["cu_seqlens"] = cu
        if cu_c is not None and self.scorer != "max":
            given["cu_seqlens_compressed"] = cu_c
        return given

    def windows(self, tokens):
        return windows_of(tokens, self.length, self.stride)

    def lse(self, q, k):
        """Of the compressed branch: [heads, tokens], float32."""
        lse = np.full((self.heads, len(q)), -np.inf)
        for t in range(len(q)):
            if n := self.windows(t + 1):
                s = self.scores(q[t], k[:n])
                with np.errstate(invalid="ignore"):
                    lse[:, t] = np.log(np.exp(s).sum(1))
        return lse.astype(np.float32)

    def scores(self, q, k):
        k = k.astype(np.float64).repeat(self.heads // self.kv_heads, 1)
        with np.errstate(invalid="ignore"):
            return np.einsum("hd,ihd->hi", q.astype(np.float64), k) * self.dim ** -0.5

    def importances(self, q, k, lse, t):
        """[heads of lists, blocks up to that of t]."""
        n, blocks, parts = self.windows(t + 1), t // self.block + 1, self.block // self.stride
        scores = self.scores(q[t], k[:n])
        if self.scorer == "max":
            ends = [scores[:, j * self.block:(j + 1) * self.block].max(1) for j in range(blocks)]
            return np.stack(ends, 1).reshape(self.lists, -1, blocks).max(1)
        if self.scorer == "mean_key":
            with np.errstate(invalid="ignore"):
                sums = scores.reshape(self.lists, self.heads // self.lists, n).sum(1)
            return np.pad(sums, ((0, 0), (0, blocks - n)))
        with np.errstate(invalid="ignore"):
            p = np.exp(scores - lse[:, t:t + 1].astype(np.float64))
        p[np.isneginf(lse[:, t])] = 0
        p = p.reshape(self.lists, self.heads // self.lists, n).sum(1)
        result = np.zeros((self.lists, blocks))
        for j in range(blocks):
            for m in range(parts):
                for of_window in range(self.length // self.stride):
                    i = j * parts + m - of_window
                    if 0 <= i < n:
                        result[:, j] += p[:, i]
        return result

    def check(self, lists, q, k, lse):
        """Lists [heads of lists, lines, width] of one sequence; how many were exactly decided."""
        decided = 0
        for line in range(lists.shape[1]):
            t = line * self.rows
            last = (min(t + self.rows, len(q)) - 1) // self.block
            current = t // self.block
            importances = self.importances(q, k, lse, t)
            for g in range(self.lists):
                found = lists[g, line]
                forced = [j for j in range(current + 1) if j < self.first or j > current - self.local]
                others = [j for j in range(current + 1) if j not in forced]
                rank = np.where(np.isnan(importances[g]), -np.inf, importances[g])
                free = min(self.count, current + 1) - len(forced)
                order = sorted(others, key=lambda j: (-rank[j], j))
                chosen, left = order[:free], order[free:]
                wanted = sorted(forced + chosen) + list(range(current + 1, last + 1))
                wanted += [-1] * (self.width - len(wanted))
                bounds = (rank[chosen[-1]], rank[left[0]]) if chosen and left else (0, 0)
                gap = bounds[0] - bounds[1] if np.isfinite(bounds).all() else np.inf
                if not 0 < gap < NEAR:
                    assert found.tolist() == wanted, (line, g, found.tolist(), wanted)
                    decided += 1
                    continue
                listed = found[found >= 0].tolist()
                assert listed == sorted(set(listed)) and len(listed) == len([j for j in wanted if j >= 0])
                assert all(j in listed for j in chosen if rank[j] > rank[left[0]] + NEAR) and set(forced) <= set(listed)
                assert not any(j in listed for j in left if rank[j] < rank[chosen[-1]] - NEAR)
        return decided


def inputs(case, tokens, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.standard_normal((tokens, case.heads, case.dim)).astype(np.float32)
    k = rng.standard_normal((case.windows(tokens), case.kv_heads, case.dim)).astype(np.float32)
    return q, 2 * k


def run_packed(case, sequences, unused=3, lse=None, dtype="f32"):
    """Packed sequences of (q, k), and each one's lists; lines of no tile are checked here."""
    cu = np.cumsum([0] + [len(q) for q, _ in sequences]).astype(np.int32)
    cu_c = np.cumsum([0] + [len(k) for _, k in sequences]).astype(np.int32)
    total = cu[-1] + unused
    windows = total if case.scorer == "max" else max(cu_c[-1], 1) + unused
    q = np.full((total, case.heads, case.dim), 3, np.float32)
    k = np.full((windows, case.kv_heads, case.dim), 3, np.float32)
    all_lse = np.zeros((case.heads, total), np.float32)
    lse = lse or [case.lse(*sequence) for sequence in sequences]
    for b, (own_q, own_k) in enumerate(sequences):
        q[cu[b]:cu[b + 1]], k[cu_c[b]:cu_c[b + 1]], all_lse[:, cu[b]:cu[b + 1]] = own_q, own_k, lse[b]
    lines = total // case.rows + len(sequences)
    blocks = np.full((case.lists, lines, case.width), 77, np.int32)
    kind = {"f32": np.float32, "f16": np.float16}[dtype]
    given = case.tensors(q.astype(kind), k.astype(kind), all_lse, cu, cu_c)
    case.kernel("thd", dtype).launch(dict(given, blocks=blocks))
    found, seen = [], np.zeros(lines, bool)
    for b, (own_q, _) in enumerate(sequences):
        first, tiles = cu[b] // case.rows + b, -(-len(own_q) // case.rows)
        found.append(blocks[:, first:first + tiles])
        seen[first:first + tiles] = True
    assert (blocks[:, ~seen] == -1).all()
    return found, lse


CASES = {
    "paper": Case(6, 2, 16, 32, 16, 64, 4, 1, 2, 1),
    "tiles": Case(4, 4, 8, 8, 8, 8, 5, 1, 2, 16),
    "tiles_of_a_block": Case(3, 1, 24, 64, 64, 64, 3, 0, 1, 64),
    "tiles_of_blocks": Case(20, 1, 16, 16, 4, 8, 6, 0, 3, 128),
    "parts": Case(20, 1, 8, 8, 4, 64, 3, 1, 1, 16),
    "long_windows": Case(2, 1, 16, 64, 8, 8, 7, 1, 2, 1),
    "thirds": Case(3, 3, 40, 16, 16, 48, 3, 0, 1, 1),
    "no_choice": Case(3, 1, 16, 8, 8, 8, 4, 1, 3, 1),
    "few_candidates": Case(3, 1, 16, 8, 8, 8, 1024, 1, 3, 16),
    "many": Case(2, 1, 8, 1, 1, 1, 100, 0, 3, 1),
    "prob_of_heads": Case(6, 2, 16, 32, 16, 64, 4, 1, 1, 1, per_head=True),
    "moba": Case.of("mean_key", 6, 2, 16, 16, 4, 0, 1, 1, per_head=True),
    "moba_tiles": Case.of("mean_key", 4, 4, 24, 8, 5, 0, 1, 32, per_head=True),
    "mean_key_of_groups": Case.of("mean_key", 20, 1, 16, 16, 6, 1, 2, 4),
    "msa": Case.of("max", 4, 1, 16, 16, 4, 0, 1, 1, per_head=True),
    "msa_tiles": Case.of("max", 2, 2, 24, 8, 5, 1, 2, 16, per_head=True),
    "max_of_groups": Case.of("max", 6, 2, 8, 5, 7, 0, 1, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_packed(name):
    case = CASES[name]
    lengths = [0, 1, case.length - 1, case.length, case.block, 300, 0]
    sequences = [inputs(case, n, seed) for seed, n in enumerate(lengths)]
    found, lse = run_packed(case, sequences)
    decided = total = 0
    for (q, k), lists, own in zip(sequences, found, lse):
        decided += case.check(lists, q, k, own)
        total += lists.shape[0] * lists.shape[1]
    assert decided >= 0.4 * total, (decided, total)
    # A sequence's lists are its own, to the bit, and again.
    alone, _ = run_packed(case, sequences[5:6], unused=0, lse=lse[5:6])
    again, _ = run_packed(case, sequences, lse=lse)
    assert np.array_equal(alone[0], found[5]) and all(map(np.array_equal, again, found))


@pytest.mark.parametrize("layout", ("bshd", "bhsd", "sbhd"))
@pytest.mark.parametrize("name", ("paper", "tiles", "tiles_of_blocks", "moba", "msa_tiles"))
def test_dense(name, layout):
    case, tokens = CASES[name], 205
    sequences = [inputs(case, tokens, seed) for seed in (5, 6)]
    axes = {"bshd": (0, 1, 2, 3), "bhsd": (0, 2, 1, 3), "sbhd": (1, 0, 2, 3)}[layout]
    q, k = (np.ascontiguousarray(np.stack(part).transpose(axes)) for part in zip(*sequences))
    lse = np.stack([case.lse(*sequence) for sequence in sequences])
    room = np.full((2, case.lists + 1, -(-tokens // case.rows) + 1, case.width), 77, np.int32)
    blocks = room[:, 1:, 1:]  # batch rows and heads may be further apart
    case.kernel(layout).launch(dict(case.tensors(q, k, lse), blocks=blocks))
    for b, sequence in enumerate(sequences):
        assert case.check(blocks[b], *sequence, lse[b]) > 0
    assert (room[:, 0] == 77).all() and (room[:, :, 0] == 77).all()
    packed, _ = run_packed(case, sequences, lse=list(lse))
    assert all(map(np.array_equal, packed, blocks))


@pytest.mark.parametrize("name", ("paper", "tiles", "long_windows"))
def test_ties_and_nan(name):
    case = CASES[name]
    q, k = inputs(case, 300)
    k[:] = k[:1]  # importances of whole blocks are equal
    lists, lse = run_packed(case, [(q, k)])
    assert case.check(lists[0], q, k, lse[0]) > 0
    # A NaN key, which only its own blocks feel.
    q, k = inputs(case, 300, 8)
    own = case.lse(q, k)
    k[5, 0, 0] = np.nan
    lists, _ = run_packed(case, [(q, k)], lse=[own])
    assert case.check(lists[0], q, k, own) > 0
    # Rows without keys in the compressed branch have no importance, whatever the keys are.
    own[0, ::2] = -np.inf
    lists, _ = run_packed(case, [(q, k)], lse=[own])
    assert case.check(lists[0], q, k, own) > 0
    own[:] = np.nan  # all equal, and less than any number
    lists, _ = run_packed(case, [(q, k)], lse=[own])
    assert case.check(lists[0], q, k, own) > 0


@pytest.mark.parametrize("name", ("moba", "mean_key_of_groups", "msa", "max_of_groups"))
def test_ties_and_nan_of_scores(name):
    case = CASES[name]
    q, k = inputs(case, 300)
    k[:] = k[:1]
    run = lambda: case.check(run_packed(case, [(q, k)], lse=[np.zeros((case.heads, len(q)))])[0][0], q, k, None)
    assert run() > 0
    # Products with zeros of both signs are equal.
    q, k = inputs(case, 300, 3)
    q[::2], q[1::2] = 0., -0.
    assert run() > 0
    # A block with a NaN and one of -infinity are equal, and behind all others.
    q, k = inputs(case, 300, 8)
    q[:] = np.abs(q)
    windows = case.block // case.stride
    k[2 * windows], k[3 * windows:4 * windows], k[4 * windows:] = np.nan, -np.inf, -1e30
    lists = run_packed(case, [(q, k)], lse=[np.zeros((case.heads, len(q)))])[0][0]
    assert case.check(lists, q, k, None) > 0
    seen = lambda j: (lists == j).any(2)[:, 5 * case.block // case.rows + 1:]
    assert seen(0).all() and seen(1).all() and not (seen(3) & ~seen(2)).any()
    # A NaN in a later key of its own block, or behind it, is not seen.
    q, k = inputs(case, 300, 9)
    before, _ = run_packed(case, [(q, k)], lse=[np.zeros((case.heads, len(q)))])
    k[-1] = np.nan
    after, _ = run_packed(case, [(q, k)], lse=[np.zeros((case.heads, len(q)))])
    own = (len(k) - 1) * case.stride // case.block * case.block // case.rows
    assert np.array_equal(before[0][:, :own], after[0][:, :own])


def test_float16():
    case = CASES["paper"]
    q, k = (x.astype(np.float16).astype(np.float32) for x in inputs(case, 300))
    lists, lse = run_packed(case, [(q, k)], dtype="f16")
    assert case.check(lists[0], q, k, lse[0]) > 0
