# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The problems that bench_peers.py times, and what their results are, in float64.

A mask is given twice: in the words of the IR, and as intervals of keys, one row of four numbers for each query: the
query sees keys [b0, e0) and [b1, e1). Pairs, masks of peers and the reference follow from the intervals."""
import dataclasses

import torch

from backward import slopes

GROUPS = ("dense", "masks", "scores", "models", "scale")
SOFTCAP = 30.0


def i(n):
    return torch.arange(n)


def intervals(b0, e0, b1=None, e1=None):
    columns = torch.broadcast_tensors(b0, e0, e0 if b1 is None else b1, e0 if e1 is None else e1)
    return torch.stack(columns, -1)


def full(queries, keys):
    return intervals(torch.zeros(queries, dtype=torch.int64), torch.full((queries,), keys))


def causal(queries, keys):
    return intervals(torch.zeros(queries, dtype=torch.int64), i(queries) + 1 + keys - queries)


def window(queries, left):
    return intervals((i(queries) - left).clamp(min=0), i(queries) + 1)


def sinks(queries, left, keys):
    """The first `keys` keys, and a window."""
    end = i(queries) + 1
    first = end.clamp(max=keys)
    return intervals(torch.zeros_like(end), first, torch.maximum(i(queries) - left, first), end)


def global_rows(queries, rows, reach):
    """The first `rows` rows see all keys, the others a window both ways."""
    sees_all = i(queries) < rows
    return intervals(torch.where(sees_all, 0, i(queries) - reach).clamp(min=0),
                     torch.where(sees_all, queries, (i(queries) + reach + 1).clamp(max=queries)))


def documents(lengths):
    starts = torch.tensor([0, *lengths[:-1]]).cumsum(0).repeat_interleave(torch.tensor(lengths))
    return intervals(starts, i(sum(lengths)) + 1)


@dataclasses.dataclass(eq=False)
class Case:
    """`kind`: full, causal or window for peers that have these by name, else other. `lengths`: of packed sequences;
    with `packed` our problem is packed too, else its mask says where sequences end."""
    group: str
    name: str
    mask: str
    kind: str
    rows: torch.Tensor  # [queries, 4]
    heads: int
    kv_heads: int
    dim: int
    dim_v: int
    batch: int
    queries: int
    keys: int
    left: int = 0
    lengths: tuple = ()
    packed: bool = False
    score: str = ""
    typical: str = ""
    backward: bool = True

    def text(self):
        score = f" score([{self.score}])" if self.score else ""
        return (f"attn.problem @bench mask({self.mask}) layout({'thd' if self.packed else 'bshd'}) "
                f"heads({self.heads}, {self.kv_heads}) dims({self.dim}, {self.dim_v}) dtype(bf16){score}"
                f"{f' expected_seqlen({self.typical})' if self.typical else ''}\n")

    def texts(self):
        """The kernels that are needed of us, by the name of the peer and the pass."""
        found = {("attnc", "forward"): self.text()}
        if self.backward:
            found["attnc", "backward"] = self.text() + "attn.backward @grads of(@bench)"
            if self.group in ("dense", "scores"):
                found["attnc deterministic", "backward"] = self.text() + "attn.backward @grads of(@bench) deterministic"
        return found

    def flops(self, which):
        """Two matrix products forward and five backward, of visible pairs."""
        pairs = (self.rows[:, 1] - self.rows[:, 0] + self.rows[:, 3] - self.rows[:, 2]).sum().item() * self.batch
        return 2 * pairs * self.heads * (self.dim + self.dim_v) * (2.5 if which == "backward" else 1)

    def signature(self):
        """Cases that differ in nothing else run the same kernels of FlashAttention-4 and cudnn.flex_attention."""
        return (self.dim, self.dim_v, self.heads // self.kv_heads, self.kind, bool(self.lengths), self.left, self.score,
                self.queries < 64)

    def tensors(self, device):
        def draw(*shape):
            return torch.randn(*shape, device=device, dtype=torch.bfloat16)
        t = {"q": draw(self.batch, self.queries, self.heads, self.dim),
             "k": draw(self.batch, self.keys, self.kv_heads, self.dim),
             "v": draw(self.batch, self.keys, self.kv_heads, self.dim_v),
             "do": draw(self.batch, self.queries, self.heads, self.dim_v)}
        t["lse"] = torch.full((self.batch, self.heads, self.queries), float("nan"), device=device)
        if self.packed:
            t = {name: x[0] for name, x in t.items()}
        for gradient, of in (("o", "do"), ("dq", "q"), ("dk", "k"), ("dv", "v")):
            t[gradient] = torch.full_like(t[of], float("nan"))
        if self.lengths:
            t["cu"] = torch.tensor([0, *self.lengths]).cumsum(0).int().to(device)
        return t


def dense_name(d, s, what):
    return f"d{d} b{16384 // s} h{2048 // d} s{s} {what}"


def dense(group, d, s, what, mask, kind, rows, score="", **more):
    h = 2048 // d
    return Case(group, dense_name(d, s, what), mask, kind, rows, h, h, d, d, 16384 // s, s, s, score=score,
                typical=str(s), **more)


def packed(d, what, lengths):
    h, tokens = 2048 // d, sum(lengths)
    return Case("masks", f"d{d} h{h} {what}", "#attn.causal", "causal", documents(lengths), h, h, d, d, 1,
                tokens, tokens, lengths=tuple(lengths), packed=True, typical=str(round(tokens / len(lengths))))


def model(name, b, sq, sk, h, g, d, dv=None, kind="causal", backward=True, typical=""):
    rows = causal(sq, sk) if kind == "causal" else full(sq, sk)
    mask = "#attn.full" if kind == "full" else "#attn.causal" if sq == sk else "#attn.causal<bottom_right>"
    return Case("models", name, mask, kind, rows, h, g, d, dv or d, b, sq, sk, typical=typical, backward=backward)


UNEVEN = [4096, 3072, 2560, 2048, 1536, 1024, 896, 512, 384, 256]


def random_documents(count, tokens=32768):
    cuts = torch.randperm(tokens - 1, generator=torch.Generator().manual_seed(count))[: count - 1].sort().values + 1
    return torch.cat([torch.tensor([0]), cuts, torch.tensor([tokens])]).diff().tolist()


def band(left):
    return f"#attn.band<left = {left}, right = 0>"


def some_keys_or_window(keys, left):
    return f"#attn.or<#attn.and<#attn.prefix<{keys}>, #attn.causal>, {band(left)}>"


def scale(tokens, name, mask, kind, rows, **more):
    """Rows see a bounded number of keys, so time should grow with the number of tokens."""
    return Case("scale", f"d128 b1 h2 s{tokens} {name}", mask, kind, rows, 2, 2, 128, 128, 1, tokens, tokens,
                typical=str(tokens), **more)


def scale_cases():
    for n in (65536, 262144):
        yield scale(n, "causal window4096", band(4095), "window", window(n, 4095), left=4095)
        yield scale(n, "window4096 or 64 sinks", some_keys_or_window(64, 4095), "other", sinks(n, 4095, 64))
        chunks = (8192,) * (n // 8192)
        yield scale(n, "chunk8192 causal", "#attn.and<#attn.chunk<8192>, #attn.causal>", "causal", documents(chunks),
                    lengths=chunks)
        yield scale(n, "64 global rows or window512 both ways",
                    "#attn.or<#attn.global_rows<64>, #attn.band<left = 512, right = 512>>", "other",
                    global_rows(n, 64, 512))


def all_cases():
    for d in (128, 64, 256):
        for s in (16384, 4096, 1024):
            yield dense("dense", d, s, "causal", "#attn.causal", "causal", causal(s, s))
            yield dense("dense", d, s, "full", "#attn.full", "full", full(s, s))
    n = 16384
    for w in (1024, 128):
        yield dense("masks", 128, n, f"causal window{w}", band(w - 1), "window", window(n, w - 1), left=w - 1)
    yield packed(128, "docs uneven10 causal", UNEVEN)
    for count in (8, 32, 128):
        yield packed(128, f"T32768 docs{count} causal", random_documents(count))
    for d in (128, 64):
        yield dense("masks", d, n, "window1024 or 64 sinks", some_keys_or_window(64, 1023), "other", sinks(n, 1023, 64))
    yield dense("masks", 128, n, "window512 or 1024 global keys", some_keys_or_window(1024, 511), "other",
                sinks(n, 511, 1024))
    yield dense("masks", 128, n, "prefix4096 or causal", "#attn.or<#attn.prefix<4096>, #attn.causal>", "other",
                intervals(torch.zeros(n, dtype=torch.int64), (i(n) + 1).clamp(min=4096)))
    yield dense("masks", 128, n, "chunk4096 causal", "#attn.and<#attn.chunk<4096>, #attn.causal>", "causal",
                documents([4096] * 4), lengths=(4096,) * 4)
    yield dense("scores", 128, n, "causal softcap", "#attn.causal", "causal", causal(n, n), f"#attn.softcap<{SOFTCAP}>")
    yield dense("scores", 128, n, "causal alibi", "#attn.causal", "causal", causal(n, n), "#attn.alibi")
    yield model("gqa 32/8 d128 b4 s4096 causal", 4, 4096, 4096, 32, 8, 128)
    yield model("gqa 32/8 d128 b1 s16384 causal", 1, n, n, 32, 8, 128)
    yield model("gqa 64/8 d128 b2 s8192 causal", 2, 8192, 8192, 64, 8, 128)
    yield model("gqa 28/4 d128 b2 s8192 causal", 2, 8192, 8192, 28, 4, 128)
    yield model("gqa 64/8 d64 b2 s8192 causal", 2, 8192, 8192, 64, 8, 64)
    yield model("mqa 16/1 d256 b2 s8192 causal", 2, 8192, 8192, 16, 1, 256)
    yield model("mha 16 d96 b4 s4096 causal", 4, 4096, 4096, 16, 16, 96)
    yield model("mha 16 d192/128 b2 s8192 causal", 2, 8192, 8192, 16, 16, 192, 128)
    yield model("mha 24 d128 b2 s4250 full", 2, 4250, 4250, 24, 24, 128, kind="full")
    yield model("cross 24 d128 b2 q4096 kv512 full", 2, 4096, 512, 24, 24, 128, kind="full")
    for b, sq, sk in ((1, 1, 65536), (16, 1, 8192), (64, 1, 4096), (128, 1, 2048), (16, 4, 16384)):
        yield model(f"decode 32/8 d128 b{b} q{sq} kv{sk}", b, sq, sk, 32, 8, 128, kind="full", backward=False,
                    typical=f"{sq}, {sk}")
    yield model("prefill 32/8 d128 b1 q2048 kv32768 causal", 1, 2048, 32768, 32, 8, 128, backward=False)
    yield model("gqa 32/8 d128 b1 s65536 causal", 1, 65536, 65536, 32, 8, 128)
    yield from scale_cases()


def chosen(groups, part):
    return [case for case in all_cases() if case.group in groups and part in case.name]


# Results by the definition.

def batched(x):
    """[batch, rows, heads, dim], also of packed sequences."""
    return x if x.dim() == 4 else x[None]


def slices(case, most):
    """Batches and heads of keys that are checked: the first and the last, or some of the last alone."""
    ends = [(case.batch - 1, case.kv_heads - 1), (0, 0)]
    return list(dict.fromkeys(ends))[:most]


def reference(case, t, batch, group, chunk=1024):
    """o, dq, dk, dv in float64: of all rows of a batch and of the heads that share a head of keys."""
    ratio = case.heads // case.kv_heads
    q, do = (batched(t[x])[batch, :, group * ratio:(group + 1) * ratio].double() for x in ("q", "do"))
    k, v = (batched(t[x])[batch, :, group].double() for x in "kv")
    scale, rows = case.dim ** -0.5, case.rows.to(k.device)
    o, dq, dk, dv = torch.zeros_like(do), torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for begin in range(0, case.queries, chunk):
        r = rows[begin:begin + chunk]
        seen, end = int(r[:, 0].min()), int(r.max())
        j = torch.arange(seen, end, device=k.device)
        hidden = ~((j >= r[:, :1]) & (j < r[:, 1:2]) | (j >= r[:, 2:3]) & (j < r[:, 3:]))
        keys, values = k[seen:end], v[seen:end]
        for h in range(ratio):
            of = slice(begin, begin + len(r)), h
            s = q[of] @ keys.T * scale
            slope = 1
            if "softcap" in case.score:
                s = SOFTCAP * torch.tanh(s / SOFTCAP)
                slope = 1 - (s / SOFTCAP) ** 2
            if "alibi" in case.score:
                at = torch.arange(begin, begin + len(r), device=k.device)[:, None]
                s = s - slopes(case.heads)[group * ratio + h] * (at - j).abs()
            p = torch.softmax(s.masked_fill_(hidden, float("-inf")), -1)
            del s
            o[of] = p @ values
            if case.backward:
                dv[seen:end] += p.T @ do[of]
                ds = p * (do[of] @ values.T - (do[of] * o[of]).sum(-1, keepdim=True)) * slope * scale
                dq[of] = ds @ keys
                dk[seen:end] += ds.T @ q[of]
    return {"o": o, "dq": dq, "dk": dk, "dv": dv}


def error_of(got, wanted):
    """Relative, in the 2-norm; what is no number counts as infinite."""
    error = ((got.double() - wanted.double()).norm() / wanted.double().norm()).item()
    return error if error == error else float("inf")


def error_of_slice(case, names, results, wanted, batch, group):
    """The largest of some results, by the reference of a slice."""
    ratio = case.heads // case.kv_heads
    worst = 0.0
    for name, got in zip(names, results):
        got = batched(got)[batch]
        got = got[:, group] if name in ("dk", "dv") else got[:, group * ratio:(group + 1) * ratio]
        worst = max(worst, error_of(got, wanted[name]))
    return worst
