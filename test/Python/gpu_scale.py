# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times that should grow with the number of tokens: masks whose rows see a bounded number of keys, at 64K to 1M tokens.

    gpu_scale.py [--out FILE.jsonl] [--commit HASH] [--tokens N]

One JSON line a case: medians of five calls through attnc.torch, in ms (of a GPU; below 1 ms a call's host time counts,
too), of 2 heads in bfloat16. ATTN_LIBRARY selects the build. `ok`: at four times the tokens, gradients take at most six
times as long.
"""
import statistics

from gpu_report import finish, machine, options, report  # first: it finds the package

args = options(__doc__, lambda parser: parser.add_argument("--tokens", type=int, default=1 << 20, help="at most"))

import torch  # noqa: E402

import attnc  # noqa: E402
import attnc.torch  # noqa: E402

CHUNK = attnc.chunk(8192)
CASES = {
    "chunk 8192 causal": (attnc.causal() & CHUNK, {}),
    "chunk 8192 causal deterministic": (attnc.causal() & CHUNK, {"deterministic": True}),
    "chunk 8192": (CHUNK, {}),
    "window 4096": (attnc.window(4096), {}),
    "window 4096 deterministic": (attnc.window(4096), {"deterministic": True}),
    "window 4096 or 64 sinks": (attnc.causal() & (attnc.window(4096) | attnc.sink(64)), {}),
}


def ms(call):
    times = []
    for _ in range(7):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times[2:])


def time_case(name, dim, tokens, before):
    """Reports a case; returns the time of gradients. `before`: that at a quarter of the tokens, or None."""
    mask, given = CASES[name]
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, tokens, 2, dim, device="cuda", dtype=torch.bfloat16, requires_grad=True)
               for _ in range(3))
    grad = torch.randn_like(q)
    o = attnc.torch.attention(q, k, v, mask=mask, **given)
    forward = ms(lambda: attnc.torch.attention(q, k, v, mask=mask, **given))
    backward = ms(lambda: torch.autograd.grad(o, (q, k, v), grad, retain_graph=True))
    report(name, before is None or backward <= 6 * before, dim=dim, tokens=tokens, fwd_ms=round(forward, 3),
           bwd_ms=round(backward, 3))
    return backward


machine(gpu=torch.cuda.get_device_name(), torch=torch.__version__)
for case in CASES:
    for head_dim in (128, 64):
        last, length = None, 1 << 16
        while length <= args.tokens:
            last = time_case(case, head_dim, length, last)
            length *= 4
finish()
