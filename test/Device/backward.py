# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Backward passes on torch tensors, and the same by the definition, in float64."""
import math

import torch


def randn(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def poisoned(like):
    return torch.full_like(like, math.nan)


def slopes(heads):
    power = 2 ** int(math.log2(heads))
    return [2.0 ** (-8 * (h + 1) / power) if h < power else 2.0 ** (-4 * (2 * (h - power) + 1) / power)
            for h in range(heads)]


def reference(q, k, v, do, visible, scale, softcap=0, alibi=False, dlse=None):
    """o, lse, dq, dk, dv of one sequence, [rows, heads, dim], by autograd in float64; `visible` is [rows, keys]."""
    q, k, v = (t.detach().double().requires_grad_() for t in (q, k, v))
    group = q.shape[1] // k.shape[1]
    s = torch.einsum("qhd,khd->hqk", q, k.repeat_interleave(group, 1)) * scale
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    if alibi:
        i = torch.arange(s.shape[1], device=s.device)[:, None] - torch.arange(s.shape[2], device=s.device)[None]
        s = s - torch.tensor(slopes(q.shape[1]), device=s.device, dtype=s.dtype)[:, None, None] * i.abs()
    seen = visible.any(-1)
    s = s.masked_fill(~visible, -math.inf)[:, seen]
    lse = torch.logsumexp(s, -1)
    o = torch.zeros(q.shape[0], q.shape[1], v.shape[2], device=q.device, dtype=torch.float64)
    part = torch.einsum("hqk,khd->qhd", torch.exp(s - lse[..., None]), v.repeat_interleave(group, 1))
    loss = (part * do[seen].double()).sum()
    if dlse is not None:
        loss = loss + (lse * dlse[:, seen].double()).sum()
    grads = torch.autograd.grad(loss, (q, k, v), allow_unused=True) if seen.any() else (None,) * 3
    o[seen] = part.detach()
    all_lse = torch.full((q.shape[1], q.shape[0]), -math.inf, device=q.device, dtype=torch.float64)
    all_lse[:, seen] = lse.detach()
    return o, all_lse, *(torch.zeros_like(t) if g is None else g for t, g in zip((q, k, v), grads))


class Dense:
    """Tensors of both passes; layout bshd."""

    def __init__(self, library, mask, b, s, sk, h, g, d, e=None, dtype="bf16", score="", options="", target=None,
                 arrays=None):
        """`arrays`: what the mask and score modifiers read, by name, and the gradients of those that are learned."""
        e = e or d
        self.scale, self.dtype = d ** -0.5, torch.bfloat16 if dtype == "bf16" else torch.float16
        text = f"attn.problem @p mask({mask}) layout(bshd) heads({h}, {g}) dims({d}, {e}) dtype({dtype}) {score}\n"
        self.forward = library.compile(text, target)
        self.backward = library.compile(text + f"attn.backward @grads of(@p) {options}", target)
        r = lambda *shape: randn(*shape, dtype=self.dtype)
        self.q, self.k, self.v, self.do = r(b, s, h, d), r(b, sk, g, d), r(b, sk, g, e), r(b, s, h, e)
        self.o, self.lse = poisoned(self.do), torch.full((b, h, s), math.nan, device="cuda")
        self.dq, self.dk, self.dv = poisoned(self.q), poisoned(self.k), poisoned(self.v)
        tensors = dict(q=self.q, k=self.k, v=self.v, o=self.o, lse=self.lse, **(arrays or {}))
        self.of_forward = self.forward.bind(**{name: t for name, t in tensors.items() if name in self.forward.names})
        if "dlse" in options:
            self.dlse = tensors["dlse"] = torch.randn_like(self.lse.nan_to_num())
        else:
            self.dlse = None
        self.of_backward = self.backward.bind(**tensors, do=self.do, dq=self.dq, dk=self.dk, dv=self.dv)

    def run(self, stream=0):
        stream = stream or torch.cuda.current_stream().cuda_stream
        self.forward.launch(self.of_forward, stream)
        self.backward.launch(self.of_backward, stream)

    def errors(self, visible, **modifiers):
        """Relative errors of dq, dk and dv against float64."""
        worst = [0.0, 0.0, 0.0]
        for i in range(self.q.shape[0]):
            dlse = None if self.dlse is None else self.dlse[i]
            want = reference(self.q[i], self.k[i], self.v[i], self.do[i], visible, self.scale, dlse=dlse,
                             **modifiers)[2:]
            for n, (got, w) in enumerate(zip((self.dq[i], self.dk[i], self.dv[i]), want)):
                size = w.norm().item()
                error = (got.double() - w).norm().item() / size if size else got.double().norm().item()
                worst[n] = max(worst[n], error if error == error else math.inf)
        return worst


def largest_error(got, wanted):
    """Relative, of several gradients; infinite if one has a NaN."""
    errors = [((g.double() - w).norm() / max(w.norm().item(), 1e-3)).item() for g, w in zip(got, wanted)]
    return max(error if error == error else math.inf for error in errors)


class Packed:
    """Padded packed sequences whose lengths change, both passes; causal, 8 heads that share `g` heads of keys. `left`:
    under a window of so many keys and one more."""

    def __init__(self, library, tokens, batch, d=128, options="", left=None, g=2):
        self.tokens, self.batch, self.d, self.left = tokens, batch, d, left
        mask = "#attn.causal" if left is None else f"#attn.band<left = {left}, right = 0>"
        text = f"attn.problem @p mask({mask}) layout(thd padded) heads(8, {g}) dims({d}) dtype(bf16)\n"
        self.forward = library.compile(text)
        self.backward = library.compile(text + f"attn.backward @grads of(@p) {options}")
        self.q, self.k, self.v, self.do = (randn(tokens, heads, d) for heads in (8, g, g, 8))
        self.o, self.lse = poisoned(self.q), torch.full((8, tokens), math.nan, device="cuda")
        self.dq, self.dk, self.dv = poisoned(self.q), poisoned(self.k), poisoned(self.v)
        self.cu, self.at = (torch.zeros(batch + 1, device="cuda", dtype=torch.int32) for _ in range(2))
        tensors = dict(q=self.q, k=self.k, v=self.v, o=self.o, lse=self.lse, cu_seqlens_q=self.cu,
                       cu_seqlens_kv=self.cu, padded_offsets_q=self.at, padded_offsets_kv=self.at)
        self.of_forward = self.forward.bind(**tensors)
        self.of_backward = self.backward.bind(**tensors, do=self.do, dq=self.dq, dk=self.dk, dv=self.dv)

    def set_lengths(self, generator):
        """Sequences with padding before, between and behind them, which is NaN in all inputs."""
        cuts = torch.randint(0, self.tokens + 1, (2 * self.batch,), generator=generator).sort().values.tolist()
        spans = list(zip(cuts[::2], cuts[1::2]))
        lengths = torch.tensor([0] + [e - b for b, e in spans]).cumsum(0)
        self.cu.copy_(lengths.int())
        self.at.copy_(torch.tensor([b for b, _ in spans] + [cuts[-1]]).int())
        padding = torch.ones(self.tokens, dtype=torch.bool, device="cuda")
        for b, e in spans:
            padding[b:e] = False
        for x in (self.q, self.k, self.v, self.do):
            x.copy_(torch.randn_like(x))
            x[padding] = math.nan
        for x in (self.o, self.lse, self.dq, self.dk, self.dv):
            x.fill_(math.nan)
        self.spans, self.padding = spans, padding

    def run(self, stream=0):
        stream = stream or torch.cuda.current_stream().cuda_stream
        self.forward.launch(self.of_forward, stream)
        self.backward.launch(self.of_backward, stream)

    def error(self):
        worst = 0.0
        for b, e in self.spans:
            if e == b:
                continue
            visible = torch.ones(e - b, e - b, device="cuda", dtype=torch.bool).tril()
            if self.left is not None:
                visible = visible.triu(-self.left)
            want = reference(self.q[b:e], self.k[b:e], self.v[b:e], self.do[b:e], visible, self.d ** -0.5)[2:]
            worst = max(worst, largest_error((self.dq[b:e], self.dk[b:e], self.dv[b:e]), want))
        for x in (self.dq, self.dk, self.dv):
            if (x[self.padding] != 0).any():
                return math.inf
        return worst


class Documents:
    """Packed sequences without padding, both passes; causal, if no other mask is given."""

    @staticmethod
    def texts(d, heads, options="", mask="#attn.causal", hints=""):
        """Of the forward and of the backward pass."""
        problem = (f"attn.problem @p mask({mask}) layout(thd) heads({heads}, {heads}) dims({d}, {d}) "
                   f"dtype(bf16) {hints}\n")
        return problem, problem + f"attn.backward @grads of(@p) {options}"

    def __init__(self, library, lengths, d, heads, options="", mask="#attn.causal", keys=None, hints=""):
        """`keys`: of each sequence, if there are not as many as queries. `hints`: what the problem says of lengths."""
        self.lengths, self.keys, self.d = lengths, keys or lengths, d
        self.forward, self.backward = (library.compile(text) for text in self.texts(d, heads, options, mask, hints))
        self.q, self.k, self.v, self.do = (randn(sum(rows), heads, d)
                                           for rows in (lengths, self.keys, self.keys, lengths))
        self.o, self.lse = poisoned(self.q), torch.full((heads, sum(lengths)), math.nan, device="cuda")
        self.dq, self.dk, self.dv = poisoned(self.q), poisoned(self.k), poisoned(self.v)
        self.cu, cu_kv = (torch.tensor([0, *rows]).cumsum(0).int().cuda() for rows in (lengths, self.keys))
        tensors = dict(q=self.q, k=self.k, v=self.v, o=self.o, lse=self.lse, cu_seqlens_q=self.cu, cu_seqlens_kv=cu_kv)
        self.of_forward = self.forward.bind(**tensors)
        self.of_backward = self.backward.bind(**tensors, do=self.do, dq=self.dq, dk=self.dk, dv=self.dv)

    def run(self, stream=0):
        stream = stream or torch.cuda.current_stream().cuda_stream
        self.forward.launch(self.of_forward, stream)
        self.backward.launch(self.of_backward, stream)

    def error(self, visible):
        """Relative, of the three gradients, the largest; `visible` is of queries and keys of one sequence, tensors of
        numbers, and how many there are."""
        wanted = [torch.zeros_like(t, dtype=torch.float64) for t in (self.dq, self.dk, self.dv)]
        row = key = 0
        for rows, keys in zip(self.lengths, self.keys):
            of_q, of_k = slice(row, row + rows), slice(key, key + keys)
            row, key = row + rows, key + keys
            if rows and keys:
                i, j = torch.arange(rows, device="cuda")[:, None], torch.arange(keys, device="cuda")[None]
                grads = reference(self.q[of_q], self.k[of_k], self.v[of_k], self.do[of_q], visible(i, j, rows, keys),
                                  self.d ** -0.5)[2:]
                for whole, own, part in zip(wanted, (of_q, of_k, of_k), grads):
                    whole[own] = part
        return largest_error((self.dq, self.dk, self.dv), wanted)
