# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnc and its peers: what to call for the passes of a case of peer_cases.py.

Each peer has `forward` and `backward`, which return what to call; the call returns o, or dq, dk and dv, in our
layout."""
import importlib
import importlib.metadata

import torch
import torch.nn.functional as F

from peer_cases import SOFTCAP, batched

DEVICE = "cuda"
OUTPUTS = {"forward": ("o",), "backward": ("dq", "dk", "dv")}


class Unsupported(Exception):
    """The peer has no kernel for a case; not an error."""


def leaves(t, *names):
    return [t[name].detach().requires_grad_() for name in names]


def gradients(o, inputs, do):
    """The backward pass alone: the graph of the forward pass is kept."""
    return lambda: torch.autograd.grad(o, inputs, do, retain_graph=True)


def first(result):
    return result[0] if isinstance(result, tuple) else result


class Cudnn:
    """cuDNN through torch's scaled_dot_product_attention."""

    def __init__(self):
        for other in ("flash", "mem_efficient", "math"):
            getattr(torch.backends.cuda, f"enable_{other}_sdp")(False)
        torch.backends.cuda.enable_cudnn_sdp(True)
        self.version = torch.backends.cudnn.version()

    def call(self, case, q, k, v):
        if case.lengths or case.score or case.kind not in ("full", "causal"):
            raise Unsupported("torch's attention through cuDNN has no such mask or score modifier")
        if case.kind == "causal" and case.queries != case.keys:
            raise Unsupported("torch's causal mask begins at the upper left corner")
        return F.scaled_dot_product_attention(q, k, v, is_causal=case.kind == "causal",
                                              enable_gqa=case.heads != case.kv_heads)

    def forward(self, case, t):
        q, k, v = (t[x].transpose(1, 2) for x in "qkv")
        return lambda: self.call(case, q, k, v).transpose(1, 2)

    def backward(self, case, t):
        q, k, v = (t[x].detach().transpose(1, 2).requires_grad_() for x in "qkv")
        call = gradients(self.call(case, q, k, v), (q, k, v), t["do"].transpose(1, 2))
        return lambda: [x.transpose(1, 2) for x in call()]


def flash_options(case):
    """The options that FlashAttention-3 and -4 share."""
    if case.kind == "other" or "alibi" in case.score:
        raise Unsupported("no such mask or score modifier")
    return dict(causal=case.kind == "causal", **(dict(softcap=SOFTCAP) if case.score else {}))


class FlashAttention3:
    def __init__(self):
        self.m = importlib.import_module("fa3_fwd_interface")
        self.version = importlib.metadata.version("fa3_fwd")

    def forward(self, case, t):
        options = flash_options(case)
        if case.kind == "window":
            raise Unsupported("the wheel is built without windows")
        q, k, v = (t[x] for x in "qkv")
        if case.lengths:
            q, k, v = (batched(x)[0] for x in (q, k, v))
            most = max(case.lengths)
            return lambda: first(self.m.flash_attn_varlen_func(q, k, v, t["cu"], t["cu"], most, most, **options))
        splits = 0 if case.queries < 64 else 1  # 0: its own choice
        return lambda: first(self.m.flash_attn_func(q, k, v, num_splits=splits, **options))

    def backward(self, case, t):
        raise Unsupported("the wheel has no backward pass")


class FlashAttention4:
    def __init__(self):
        self.m = importlib.import_module("flash_attn.cute")
        self.version = importlib.metadata.version("flash_attn_4")

    def call(self, case, t, q, k, v):
        options = flash_options(case)
        if case.kind == "window":
            options["window_size"] = (case.left, 0)
        if case.lengths:
            q, k, v = (batched(x)[0] for x in (q, k, v))
            most = max(case.lengths)
            return first(self.m.flash_attn_varlen_func(q, k, v, cu_seqlens_q=t["cu"], cu_seqlens_k=t["cu"],
                                                       max_seqlen_q=most, max_seqlen_k=most, return_lse=True,
                                                       **options))
        return first(self.m.flash_attn_func(q, k, v, return_lse=True, **options))

    def forward(self, case, t):
        flash_options(case)
        return lambda: self.call(case, t, t["q"], t["k"], t["v"])

    def backward(self, case, t):
        inputs = leaves(t, "q", "k", "v")
        o = self.call(case, t, *inputs)
        return gradients(o, inputs, t["do"].view(o.shape))


class CudnnFlex:
    """cudnn.flex_attention: masks of two intervals, of which it makes a plan ahead of its kernels. Packed sequences are
    one sequence with a mask of documents."""

    def __init__(self):
        self.m = importlib.import_module("cudnn.flex_attention")
        self.version = importlib.metadata.version("nvidia_cudnn_frontend")
        self.case = None

    def prepare(self, case, t):
        if self.case is case:
            return
        b0, e0, b1, e1 = case.rows.int().unbind(-1)
        later = b0 > 0  # [0, F0) and [F1, F2): an interval that begins behind key 0 is the second
        ends = torch.stack([torch.where(later, 0, e0), torch.where(later, b0, b1), torch.where(later, e0, e1)])
        self.inputs = [batched(x).detach().requires_grad_() for x in (t["q"], t["k"], t["v"])]
        self.plan = self.m.create_mask_plan(ends[None].contiguous().to(DEVICE), *self.inputs, build_backward=True)
        self.case = case

    def forward(self, case, t):
        self.prepare(case, t)
        q, k, v = (x.detach() for x in self.inputs)
        return lambda: self.m.flex_attn_func(q, k, v, mask_plan=self.plan)

    def backward(self, case, t):
        self.prepare(case, t)
        return gradients(self.m.flex_attn_func(*self.inputs, mask_plan=self.plan), self.inputs, batched(t["do"]))


PEERS = {"cudnn": Cudnn, "fa3": FlashAttention3, "fa4": FlashAttention4, "cudnn flex": CudnnFlex}
COMPILED = ("cudnn flex", "fa4")  # at run time


class Ours:
    """`kernels`: by the name of a peer and the pass; an exception where one did not compile."""

    def __init__(self, kernels, name):
        self.kernels, self.name = kernels, name

    def call(self, case, t, which):
        kernel = self.kernels.get((case.name, self.name, which))
        if kernel is None:
            raise Unsupported("not timed")
        if isinstance(kernel, Exception):
            raise kernel
        arrays = {"q": t["q"], "k": t["k"], "v": t["v"], "o": t["o"], "lse": t["lse"]}
        if case.packed:
            arrays.update(cu_seqlens_q=t["cu"], cu_seqlens_kv=t["cu"])
        if which == "backward":
            arrays.update({name: t[name] for name in ("do", "dq", "dk", "dv")})
        bound, outputs = kernel.bind(**arrays), [t[name] for name in OUTPUTS[which]]
        stream = torch.cuda.current_stream().cuda_stream

        def launch():
            kernel.launch(bound, stream)
            return outputs
        return launch

    def forward(self, case, t):
        call = self.call(case, t, "forward")
        return lambda: call()[0]

    def backward(self, case, t):
        return self.call(case, t, "backward")


def prepared(peer, case, t, which):
    return getattr(peer, which)(case, t)


def outputs(result):
    return result if isinstance(result, (list, tuple)) else [result]
