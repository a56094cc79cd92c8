# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Context parallelism as it is written by hand: attention of one GPU, collectives of torch.distributed around it, and
partial results that torch merges in float32. gpu_plans_speed.py compares plans with it.

Tensors are packed, [rows, heads, dim]; lse is [heads, rows], float32. Masks are "full", "causal" and "window" (of
WINDOW keys); the last query and the last key of a sequence have the same position. `world` has rank, ranks, device,
on_gpu, and merge().
"""
import importlib
import inspect

import torch
import torch.distributed as dist

import attnc
from attnc.torch import _ops  # attention()'s own way to a kernel

WINDOW = 1024


def merge(out, lse, part, part_lse):
    """Joins a partial result over other keys with `out`, float32, in place."""
    weight = torch.sigmoid(part_lse - lse).t().unsqueeze(-1)
    out.sub_(weight * (out - part))
    lse.sub_(torch.nn.functional.logsigmoid(lse - part_lse))


class Rows:
    """Rows of a tensor: a view where they are one range, else a copy."""

    def __init__(self, ranges, device):
        ranges = [list(r) for r in ranges]
        joined = ranges[:1]
        for begin, end in ranges[1:]:
            if begin == joined[-1][1]:
                joined[-1][1] = end
            else:
                joined.append([begin, end])
        self.count = sum(end - begin for begin, end in joined)
        self.first, self.index = joined[0][0], None
        if len(joined) > 1:
            self.index = torch.cat([torch.arange(begin, end) for begin, end in joined]).to(device)

    def take(self, x, axis=0):
        if self.index is None:
            return x.narrow(axis, self.first, self.count)
        return x.index_select(axis, self.index)

    def put(self, x, rows, axis=0):
        if self.index is None:
            x.narrow(axis, self.first, self.count).copy_(rows)
        else:
            x.index_copy_(axis, self.index, rows)

    def add(self, x, rows):
        if self.index is None:
            x.narrow(0, self.first, self.count).add_(rows)
        else:
            x.index_add_(0, self.index, rows.to(x.dtype))


def sums(lengths):
    return [sum(lengths[:i]) for i in range(len(lengths) + 1)]


# ---- Kernels of one GPU: forward() gives o and lse; backward() takes those over all keys, and gives dq, dk, dv. ----

class Kernels:
    def __init__(self, world):
        self.world, self._sums = world, {}

    def has(self, mask, lengths):
        return True

    def cu_seqlens(self, lengths):
        key = tuple(lengths)
        if key not in self._sums:
            self._sums[key] = torch.tensor(sums(lengths), dtype=torch.int32, device=self.world.device)
        return self._sums[key]


class Ours(Kernels):
    """Kernels of attnc."""
    name = "ours"

    @staticmethod
    def problem(mask, is_square, heads, dim):
        align = "start" if is_square else "end"
        made = {"full": attnc.full(), "causal": attnc.causal(align), "window": attnc.window(WINDOW, align=align)}
        return attnc.Problem(made[mask], heads=heads, dims=dim, layout="thd")

    def _run(self, pass_, given):
        signature = _ops.signature(pass_.text, pass_.name)
        found = _ops.run([given[t["name"]] for t in signature.inputs], pass_.text, pass_.name)
        return {t["name"]: x for t, x in zip(signature.results, found)}

    def _given(self, mask, lengths_q, lengths_kv, **tensors):
        q, k = tensors["q"], tensors["k"]
        problem = self.problem(mask, lengths_q == lengths_kv, (q.shape[1], k.shape[1]), q.shape[2])
        tensors.update(cu_seqlens_q=self.cu_seqlens(lengths_q), cu_seqlens_kv=self.cu_seqlens(lengths_kv))
        return problem, tensors

    def forward(self, q, k, v, mask, lengths_q, lengths_kv):
        problem, given = self._given(mask, lengths_q, lengths_kv, q=q, k=k, v=v)
        found = self._run(problem, given)
        return found["o"], found["lse"]

    def backward(self, do, q, k, v, o, lse, mask, lengths_q, lengths_kv, is_partial):
        problem, given = self._given(mask, lengths_q, lengths_kv, q=q, k=k, v=v, o=o, lse=lse, do=do)
        found = self._run(problem.gradient(partial_kv=is_partial), given)
        return found["dq"], found["dk"], found["dv"]


class Sdpa(Kernels):
    """cuDNN as torch calls it; on the CPU torch's own kernels, for tests. Its causal mask begins at the first key, so
    queries behind other keys take two calls."""
    name = "cudnn"

    def has(self, mask, lengths):
        return mask != "window" and len(lengths) == 1

    def forward(self, q, k, v, mask, lengths_q, lengths_kv):
        before = k.shape[0] - q.shape[0]
        if mask == "full" or before == 0:
            return self._forward(q, k, v, mask == "causal")
        out, lse = self._forward(q, k[:before], v[:before], False)
        out = out.float()
        self.world.merge(out, lse, *self._forward(q, k[before:], v[before:], True))
        return out.to(q.dtype), lse

    def backward(self, do, q, k, v, o, lse, mask, lengths_q, lengths_kv, is_partial):
        before = k.shape[0] - q.shape[0]
        if mask == "full" or before == 0:
            return self._backward(do, q, k, v, o, lse, mask == "causal")
        first = self._backward(do, q, k[:before], v[:before], o, lse, False)
        second = self._backward(do, q, k[before:], v[before:], o, lse, True)
        dq = first[0].float().add_(second[0]).to(q.dtype)
        return (dq, *(torch.cat(pair) for pair in zip(first[1:], second[1:])))

    @staticmethod
    def _dense(*tensors):
        return [x.transpose(0, 1)[None] for x in tensors]

    def _forward(self, q, k, v, is_causal):
        q, k, v = self._dense(q, k, v)
        if self.world.on_gpu:
            o, lse, *_, self._seed, self._offset, _ = torch.ops.aten._scaled_dot_product_cudnn_attention(
                q, k, v, None, True, 0.0, is_causal, False)
        else:
            o, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, is_causal)
        self._lse_axes = lse.dim()
        return o[0].transpose(0, 1), lse.reshape(lse.shape[1:3])

    def _backward(self, do, q, k, v, o, lse, is_causal):
        do, q, k, v, o = self._dense(do, q, k, v, o)
        lse = lse.contiguous()[None]
        if self._lse_axes == 4:
            lse = lse[..., None]
        if self.world.on_gpu:
            grads = torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
                do, q, k, v, o, lse, self._seed, self._offset, None, None, None, q.shape[2], k.shape[2], 0.0, is_causal)
        else:
            grads = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
                do, q, k, v, o, lse, 0.0, is_causal)
        return tuple(x[0].transpose(0, 1) for x in grads)


class Flash(Kernels):
    """FlashAttention-2 as it is in torch."""
    name = "flash"

    def _options(self, mask, lengths_q, lengths_kv):
        """Those of both passes: sums of lengths, the longest ones, and the mask."""
        longest = max(lengths_q), max(lengths_kv)
        window = dict(window_size_left=WINDOW - 1, window_size_right=0) if mask == "window" else {}
        packed = (None, None) if len(lengths_q) == 1 else (self.cu_seqlens(lengths_q), self.cu_seqlens(lengths_kv))
        return packed, longest, mask == "causal", window

    def forward(self, q, k, v, mask, lengths_q, lengths_kv):
        packed, longest, is_causal, window = self._options(mask, lengths_q, lengths_kv)
        is_dense = packed[0] is None
        q, k, v = (x[None] if is_dense else x for x in (q, k, v))
        o, lse, self._state, self._unused, _ = torch.ops.aten._flash_attention_forward(
            q, k, v, *packed, *longest, 0.0, is_causal, False, **window)
        return (o[0], lse[0]) if is_dense else (o, lse)

    def backward(self, do, q, k, v, o, lse, mask, lengths_q, lengths_kv, is_partial):
        packed, longest, is_causal, window = self._options(mask, lengths_q, lengths_kv)
        is_dense, lse = packed[0] is None, lse.contiguous()
        do, q, k, v, o, lse = (x[None] if is_dense else x for x in (do, q, k, v, o, lse))
        grads = torch.ops.aten._flash_attention_backward(
            do, q, k, v, o, lse, *packed, *longest, 0.0, is_causal, self._state, self._unused, **window)
        return tuple(x[0] for x in grads) if is_dense else tuple(grads)


class Flash3(Flash):
    """FlashAttention-3, if it is installed. The wheel `fa3-fwd` has forward passes alone; FlashAttention-2 computes
    gradients then."""
    name = "fa3"

    def __init__(self, world):
        super().__init__(world)
        try:
            self._module = importlib.import_module("flash_attn_interface")
        except ImportError:
            self._module = importlib.import_module("fa3_fwd_interface")
        self._is_complete = self._module.__name__ == "flash_attn_interface"
        if not self._is_complete:
            q = torch.zeros(64, 8, 64, device=world.device, dtype=torch.bfloat16)
            super().forward(q, q, q, "full", [64], [64])  # sets what torch's backward pass takes without dropout

    def forward(self, q, k, v, mask, lengths_q, lengths_kv):
        packed, longest, is_causal, window = self._options(mask, lengths_q, lengths_kv)
        is_dense = packed[0] is None
        function = self._module.flash_attn_func if is_dense else self._module.flash_attn_varlen_func
        options = dict(causal=is_causal)
        if window:
            options["window_size"] = tuple(window.values())
        if "return_attn_probs" in inspect.signature(function).parameters:  # earlier versions always return lse
            options["return_attn_probs"] = True
        q, k, v = (x[None] if is_dense else x for x in (q, k, v))
        o, lse, *_ = function(q, k, v, *(() if is_dense else (*packed, *longest)), **options)
        return (o[0], lse[0]) if is_dense else (o, lse)

    def backward(self, do, q, k, v, o, lse, mask, lengths_q, lengths_kv, is_partial):
        if not self._is_complete:
            return super().backward(do, q, k, v, o, lse, mask, lengths_q, lengths_kv, is_partial)
        packed, longest, is_causal, window = self._options(mask, lengths_q, lengths_kv)
        function = self._module._flash_attn_backward
        if window:
            split = "window_size_left" in inspect.signature(function).parameters
            window = window if split else dict(window_size=tuple(window.values()))
        is_dense, lse = packed[0] is None, lse.contiguous()
        do, q, k, v, o, lse = (x[None] if is_dense else x for x in (do, q, k, v, o, lse))
        grads = [torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v)]
        longest = (None, None) if is_dense else longest
        function(do, q, k, v, o, lse, *packed, None, None, *longest, *grads, q.shape[-1] ** -0.5, is_causal, **window)
        return tuple(x[0] for x in grads) if is_dense else tuple(grads)


KERNELS = {kind.name: kind for kind in (Ours, Sdpa, Flash, Flash3)}


# ---- Strategies: forward(q, k, v) of this rank's rows gives o and what backward(do, kept) takes. ----

class Strategy:
    """`own`: this rank's rows of the whole tensors."""

    def __init__(self, world, kernels, mask, lengths):
        self.world, self.kernels, self.mask, self.lengths = world, kernels, mask, lengths
        if any(length % (2 * world.ranks) for length in lengths):
            raise ValueError(f"expected lengths in multiples of {2 * world.ranks}, got: {lengths}")

    @staticmethod
    def has(mask):
        return True

    def take(self, x):
        return self.own.take(x).contiguous()

    def _chunks(self, rank):
        """The positions of a rank's two chunks of each sequence, as ranges in the whole tensor."""
        ranges = []
        for start, length in zip(sums(self.lengths), self.lengths):
            rows = length // (2 * self.world.ranks)
            for chunk in (rank, 2 * self.world.ranks - 1 - rank):
                ranges.append((start + chunk * rows, start + (chunk + 1) * rows))
        return ranges

    def _rows(self, ranges):
        return Rows(ranges, self.world.device)

    def _halves(self):
        """The first and the second chunk of each sequence, in this rank's own rows."""
        own = [length // self.world.ranks for length in self.lengths]
        return [self._rows([(start + half * rows // 2, start + (half + 1) * rows // 2)
                            for start, rows in zip(sums(own), own)]) for half in (0, 1)]

    def _shares(self, parts):
        """Lengths of `parts` of the 2 n chunks of sequences."""
        return [length // (2 * self.world.ranks) * parts for length in self.lengths]


class Ring(Strategy):
    """Keys go round; rank r has chunks r and 2 n - 1 - r of each sequence, so that all steps but the first are full,
    and half as much under a causal mask. Gradients of keys follow them, in float32."""
    name = "ring"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.own = self._rows(self._chunks(self.world.rank))
        self.whole, self.halves = self._rows([(0, self.own.count)]), self._halves()

    @staticmethod
    def has(mask):
        return mask != "window"  # of which most steps see nothing

    def _step(self, step):
        """Rows of queries and of keys, the mask, and lengths."""
        every = self._shares(2)
        if self.mask == "full" or step == 0:
            return self.whole, self.whole, self.mask, every, every
        if step <= self.world.rank:
            return self.whole, self.halves[0], "full", every, self._shares(1)
        return self.halves[1], self.whole, "full", self._shares(1), every

    def _pass_on(self, sent):
        """Tensors for the next rank; returns those of the previous one, and what to wait for."""
        world, received = self.world, [torch.empty_like(x) for x in sent]
        following, previous = (world.rank + 1) % world.ranks, (world.rank - 1) % world.ranks
        operations = [dist.P2POp(dist.isend, x, following) for x in sent]
        operations += [dist.P2POp(dist.irecv, x, previous) for x in received]
        return received, dist.batch_isend_irecv(operations)

    @staticmethod
    def _arrived(posted):
        received, works = posted
        for work in works:
            work.wait()
        return received

    def forward(self, q, k, v):
        keys, last = [k, v], self.world.ranks - 1
        for step in range(last + 1):
            posted = self._pass_on(keys) if step < last else None
            rows, of_keys, *how = self._step(step)
            part, part_lse = self.kernels.forward(rows.take(q), *(of_keys.take(x) for x in keys), *how)
            if step == 0:
                out, lse = part.float(), part_lse.clone()
            else:
                some, some_lse = rows.take(out), rows.take(lse, 1)
                self.world.merge(some, some_lse, part, part_lse)
                if rows.index is not None:  # they are copies
                    rows.put(out, some), rows.put(lse, some_lse, 1)
            keys = self._arrived(posted) if posted else keys
        o = out.to(q.dtype)
        return o, (q, k, v, o, lse)

    def backward(self, do, kept):
        q, k, v, o, lse = kept
        keys, last, grads = [k, v], self.world.ranks - 1, None
        for step in range(last + 1):
            posted = self._pass_on(keys) if step < last else None
            rows, of_keys, *how = self._step(step)
            of_q = [rows.take(x) for x in (q, o)]
            dq_part, *parts = self.kernels.backward(
                rows.take(do), of_q[0], *(of_keys.take(x) for x in keys), of_q[1], rows.take(lse, 1).contiguous(), *how,
                is_partial=last > 0)
            if step == 0:
                dq, sent = dq_part.float(), [x.float().contiguous() for x in parts]
            else:
                rows.add(dq, dq_part)
                sent = self._arrived(grads)
                for x, part in zip(sent, parts):
                    of_keys.add(x, part)
            keys = self._arrived(posted) if posted else keys
            grads = self._pass_on(sent) if last else (sent, [])
        return (dq.to(q.dtype), *(x.to(k.dtype) for x in self._arrived(grads)))


class AllGather(Strategy):
    """All keys to all ranks, then attention of this rank's rows: one call, or one for each half under a causal mask.
    The backward pass has the keys still; gradients of keys are summed in the dtype of the keys."""
    name = "all-gather"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        rank, ranks = self.world.rank, self.world.ranks
        self.order = self.back = None  # of gathered rows to those of sequences, and back
        total = sum(self.lengths)
        if self.mask == "window":
            rows = total // ranks
            first = max(0, rank * rows - WINDOW + 1)
            self.own = self._rows([(rank * rows, (rank + 1) * rows)])
            self.parts = [(self._rows([(0, rows)]), self._rows([(first, (rank + 1) * rows)]), "window", [rows],
                           [(rank + 1) * rows - first])]
            return
        self.own = self._rows(self._chunks(rank))
        if self.mask == "full":
            self.parts = [(self._rows([(0, self.own.count)]), self._rows([(0, total)]), "full", self._shares(2),
                           self.lengths)]
            return
        self.back = torch.cat([torch.arange(*r) for other in range(ranks) for r in self._chunks(other)])
        self.order = self.back.argsort().to(self.world.device)
        self.back = self.back.to(self.world.device)
        self.parts = []
        for queries, chunk in zip(self._halves(), (rank, 2 * ranks - 1 - rank)):
            seen = self._shares(chunk + 1)
            keys = self._rows([(start, start + rows) for start, rows in zip(sums(self.lengths), seen)])
            self.parts.append((queries, keys, "causal", self._shares(1), seen))

    def forward(self, q, k, v):
        keys = [x.new_empty(x.shape[0] * self.world.ranks, *x.shape[1:]) for x in (k, v)]
        for work in [dist.all_gather_into_tensor(to, x, async_op=True) for to, x in zip(keys, (k, v))]:
            work.wait()
        if self.order is not None:
            keys = [x.index_select(0, self.order) for x in keys]
        o = q.new_empty(q.shape) if len(self.parts) > 1 else None
        kept = []
        for queries, of_keys, *how in self.parts:
            own = [queries.take(q), *(of_keys.take(x) for x in keys)]
            part, lse = self.kernels.forward(*own, *how)
            kept.append((*own, part, lse))
            if o is not None:
                queries.put(o, part)
        return part if o is None else o, (q, keys, kept)

    def backward(self, do, kept):
        q, keys, parts = kept
        found = [self.kernels.backward(queries.take(do), *part, *how, is_partial=False)
                 for (queries, _, *how), part in zip(self.parts, parts)]
        if self.mask == "full":
            dq, *sent = found[0]
        elif self.mask == "window":
            dq, *grads = found[0]
            sent = [torch.zeros_like(x) for x in keys]
            for to, x in zip(sent, grads):
                self.parts[0][1].put(to, x)
        else:
            dq, sent = q.new_empty(q.shape), [torch.zeros_like(x, dtype=torch.float32) for x in keys]
            for (queries, of_keys, *_), (dq_part, *grads) in zip(self.parts, found):
                queries.put(dq, dq_part)
                for to, x in zip(sent, grads):
                    of_keys.add(to, x)
            sent = [x.index_select(0, self.back).to(q.dtype) for x in sent]
        own = [x.new_empty(x.shape[0] // self.world.ranks, *x.shape[1:]) for x in sent]
        for work in [dist.reduce_scatter_tensor(to, x.contiguous(), async_op=True) for to, x in zip(own, sent)]:
            work.wait()
        return (dq, *own)


class Ulysses(Strategy):
    """Heads for rows: rank r has the r-th part of all rows, and for attention all rows of its part of the heads. One
    message each way has q, k and v, or their gradients."""
    name = "ulysses"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        rows = sum(self.lengths) // self.world.ranks
        self.own = self._rows([(self.world.rank * rows, (self.world.rank + 1) * rows)])

    def _to_heads(self, *tensors):
        """This rank's heads of all rows."""
        ranks, rows = self.world.ranks, tensors[0].shape[0]
        widths = [x.shape[1] // ranks for x in tensors]
        if any(x.shape[1] % ranks for x in tensors):
            raise ValueError(f"expected heads in multiples of {ranks}, got: {[x.shape[1] for x in tensors]}")
        sent = tensors[0].new_empty(ranks, rows, sum(widths), tensors[0].shape[2])
        for to, x in zip(sent.split(widths, 2), tensors):
            to.copy_(x.unflatten(1, (ranks, -1)).transpose(0, 1))
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent)
        return received.flatten(0, 1).split(widths, 1)

    def _to_rows(self, *tensors):
        """All heads of this rank's rows."""
        ranks = self.world.ranks
        widths = [x.shape[1] for x in tensors]
        sent = (torch.cat(tensors, 1) if len(tensors) > 1 else tensors[0].contiguous()).unflatten(0, (ranks, -1))
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent)
        return [x.transpose(0, 1).flatten(1, 2) for x in received.split(widths, 2)]

    def forward(self, q, k, v):
        q, k, v = self._to_heads(q, k, v)
        o, lse = self.kernels.forward(q, k, v, self.mask, self.lengths, self.lengths)
        return self._to_rows(o)[0], (q, k, v, o, lse)

    def backward(self, do, kept):
        do, = self._to_heads(do)
        return self._to_rows(*self.kernels.backward(do, *kept, self.mask, self.lengths, self.lengths, is_partial=False))


STRATEGIES = (Ring, AllGather, Ulysses)
