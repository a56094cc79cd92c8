#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Problems that say nothing of lengths, whose launches have many short sequences: the kernel specialised for their
shapes, the general one, `typical`, and kernels on tiles, both passes; and few queries on many keys, forward.

  bench_hints.py BUILD [--out FILE.jsonl] [--commit HASH] [--filter TEXT] [--choices specialized,general,typical,tiles]

One JSON line a case and choice: `ms` of a launch, `apart` from the first choice's results (relative), bytes of
`workspace`, `bind_ms` of what made the program and the workspace (kernels lie in the cache, if some choice has the
same), and the `schedule` of the launch. L2 is flushed where tensors are fewer than 200 MB."""
import math
import time
from concurrent.futures import ThreadPoolExecutor

import torch

from bench import end, parser

# Ahead of bench_short, which reads the arguments.
parser.add_argument("--choices", default="specialized,general,typical,tiles")
import bench_short  # noqa: E402
from bench_short import Case, emit, library, mixed_cases, sample
args = parser.parse_args()
CHOICES = args.choices.split(",")
scratch = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
random = torch.Generator().manual_seed(2)


def packed_cases():
    def of(name, lengths, typical, dim=128):
        return Case(f"{name} d{dim}", 16, dim, lengths, lengths, bounds=typical, typical=typical)
    yield from mixed_cases()
    for dim in (64, 128):
        for s, count in ((2, 30720), (9, 16384), (17, 8192), (32, 6144), (64, 3072)):
            yield of(f"{count} of {s}", [s] * count, (s, s), dim)
    for most, count in ((16, 16384), (30, 8192), (60, 4096), (128, 2048)):
        lengths = torch.randint(1, most + 1, (count,), generator=random).tolist()
        yield of(f"{count} of 1..{most}", lengths, (min(most, 64),) * 2)
    yield of("100 of 4, 100 of 120", [4, 120] * 100, (62, 62))
    yield of("1000 of 16, 101 of 129", [16] * 1000 + [129] * 101, (16, 16))


def dense_cases():
    """Head dim, mask, queries, keys, sequences."""
    for d in (64, 128):
        for mask in ("full", "causal"):
            for s in (8, 16, 48, 64, 96, 128, 192, 256) + ((320, 512, 1024) if d == 64 else ()):
                for batch in ((1 << 15) // s, 16, 1):
                    yield d, mask, s, s, batch
        for q, k in ((1, 16), (1, 64), (1, 256), (1, 700), (4, 64), (4, 256), (16, 128), (64, 256)):
            for batch in (1, 16, 128, 1024):
                yield d, "full", q, k, batch


def few_cases():
    for batch, heads, kv_heads, queries, keys in (
            (1, 32, 8, 1, 32768), (1, 32, 32, 1, 8192), (8, 32, 8, 1, 8192), (64, 32, 8, 1, 8192),
            (1, 16, 16, 16, 16384), (16, 16, 16, 16, 4096), (1, 16, 16, 128, 8192), (16, 16, 16, 128, 4096),
            (1, 16, 16, 256, 4096), (8, 16, 16, 256, 4096), (32, 16, 16, 256, 4096)):
        yield f"few d128 b{batch} h{heads}/{kv_heads} q{queries} kv{keys}", batch, heads, kv_heads, queries, keys


def dense_text(d, mask, hint, heads="16"):
    return f"attn.problem @p mask(#attn.{mask}) layout(bshd) heads({heads}) dims({d}) dtype(bf16){hint}"


def few_texts(heads, kv_heads, queries, keys):
    hints = {"specialized": "", "typical": f" expected_seqlen({queries}, {keys})", "tiles": bench_short.TILES}
    return {choice: dense_text(128, "full", hint, f"{heads}, {kv_heads}") for choice, hint in hints.items()}


def run(name, tensors, texts, results):
    reference = None
    flush = scratch if 8 * sum(tensors[n].numel() for n in "qk") < 200e6 else None
    texts = dict(texts, general=texts["specialized"])
    for choice in [choice for choice in texts if choice.removeprefix("deterministic, ") in CHOICES]:
        text = texts[choice]
        torch.cuda.empty_cache()
        kernel = library.compile(text, general=choice.endswith("general"))
        own = dict(tensors, **{r: torch.full_like(tensors[r.removeprefix("d") if len(r) == 2 else r], math.nan)
                               for r in results})
        began = time.perf_counter()
        try:
            bound = kernel.bind(**{n: own[n] for n in kernel.names})
        except torch.OutOfMemoryError as e:
            emit(peer=choice, case=name, error=str(e)[:120])
            continue
        bind_ms = (time.perf_counter() - began) * 1e3
        launch = lambda: kernel.launch(bound, torch.cuda.current_stream().cuda_stream)  # noqa: E731, B023
        launch()
        torch.cuda.synchronize()
        reference = reference or [own[r].clone() for r in results]
        norm = lambda t: torch.linalg.vector_norm(t, dtype=torch.float32).item()  # noqa: E731
        apart = max(norm(own[r] - e) / norm(e) for r, e in zip(results, reference))
        workspace = sum(t.numel() for t in bound[1] if getattr(t, "dtype", None) == torch.uint8)
        schedule = kernel.schedule(bound)
        emit(peer=choice, case=name, ms=round(sample(launch, 10, flush)[0], 4), apart=round(apart, 5),
             workspace=workspace, bind_ms=round(bind_ms, 1), schedule=schedule)
        del bound, own


def both(name, tensors, texts, fixed=False):
    """`texts` by choice, of the forward pass. `fixed`: gradients with `deterministic` beside it, without a hint and on
    tiles."""
    tensors["do"] = torch.randn_like(tensors["q"])
    run(name + " fwd", tensors, texts, ["o", "lse"])
    forward = library.compile(texts["tiles"])  # gradients take what it leaves
    forward.launch(forward.bind(**{n: tensors[n] for n in forward.names}), torch.cuda.current_stream().cuda_stream)
    gradients = {choice: text + "\nattn.backward @g of(@p)".replace("@p", "@bench" if "@bench" in text else "@p")
                 for choice, text in texts.items()}
    if fixed:
        gradients.update({f"deterministic, {choice}": gradients[choice] + " deterministic"
                          for choice in ("specialized", "tiles") if "typical" in CHOICES})
    run(name + " bwd", tensors, gradients, ["dq", "dk", "dv"])


def main():
    x = torch.empty(1 << 30, dtype=torch.int8, device="cuda")
    y = torch.empty_like(x)
    copy = 2 * x.numel() / sample(lambda: y.copy_(x), 20)[0] / 1e6
    del x, y
    emit(peer="env", commit=args.commit, gpu=torch.cuda.get_device_name(), torch=torch.__version__,
         date=time.strftime("%Y-%m-%d"), copy_gb_s=round(copy))
    packed = [(case, {"specialized": case.text(hint=""), "typical": case.text(hint="typical"),
                      "tiles": case.text(hint="tiles")})
              for case in packed_cases() if args.filter in case.name]
    dense = [(f"dense d{d} {mask} b{batch} " + (f"s{q}" if q == k else f"q{q} kv{k}"), d, batch, q, k,
              {"specialized": dense_text(d, mask, ""), "typical": dense_text(d, mask, f" expected_seqlen({q}, {k})"),
               "tiles": dense_text(d, mask, bench_short.TILES)})
             for d, mask, q, k, batch in dense_cases()]
    dense = [case for case in dense if args.filter in case[0]]
    texts = {text for case in packed + dense for text in case[-1].values()}
    texts |= {text + "\nattn.backward @g of(@bench)" if "@bench" in text else text + "\nattn.backward @g of(@p)"
              for text in texts}
    few = [(case[0], *case[1:], few_texts(*case[2:])) for case in few_cases() if args.filter in case[0]]
    texts |= {text for case in few for text in case[-1].values()}
    with ThreadPoolExecutor() as pool:
        list(pool.map(library.compile, sorted(texts)))
    for case, choices in packed:
        both(case.name, case.tensors(), choices)
        torch.cuda.empty_cache()
    for name, d, batch, q, k, choices in dense:
        rows = {n: torch.randn(batch, k if n in "kv" else q, 16, d, device="cuda", dtype=torch.bfloat16)
                for n in ("q", "k", "v", "o")}
        both(name, dict(rows, lse=torch.empty(batch, 16, q, device="cuda")), choices, fixed=True)
    for name, batch, heads, kv_heads, queries, keys, choices in few:
        q, o = (torch.randn(batch, queries, heads, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        k, v = (torch.randn(batch, keys, kv_heads, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        run(name + " fwd", dict(q=q, k=k, v=v, o=o, lse=torch.empty(batch, heads, queries, device="cuda")), choices,
            ["o", "lse"])


main()
end()
