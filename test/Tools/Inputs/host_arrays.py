# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches a packed problem on the CPU with good and bad cu_seqlens, through ctypes."""
import numpy as np
from on_host import aligned, bind, c, compiled

tokens = 30


def launch(what, kernel, cu, **lists):
    arrays = {"q": (aligned((tokens, 4, 16), np.uint16), 0), "k": (aligned((tokens, 2, 16), np.uint16), 0),
              "v": (aligned((tokens, 2, 16), np.uint16), 0), "o": (aligned((tokens, 4, 16), np.uint16), 0),
              "lse": (aligned((4, tokens), np.float32), 2), "cu_seqlens_q": (np.array(cu, np.int32), 3),
              "cu_seqlens_kv": (np.array([0, 10, 30], np.int32), 3)}
    arrays.update((name, (np.array(values, np.int32), 3)) for name, values in lists.items())
    tensors, _ = bind(kernel, arrays)
    status = c.attnLaunch(kernel, tensors, None, None)
    print(what + ":", c.attnLastError().decode() if status else "ok", flush=True)


problem = b"attn.problem @p mask(#attn.causal) layout(thd) heads(4, 2) dims(16) dtype(bf16)"
plain = compiled(problem)
for what, cu in (("descending", [0, 20, 10]), ("beyond", [0, 10, 3000]), ("negative", [-5, 10, 30]),
                 ("good", [0, 10, 30])):
    launch(what, plain, cu)
listed = compiled(problem + b" tiles(64)")
for what, tiles, count in (("good list", [2, 1, -1, -1], 2), ("too few", [2, 1, 0, 0], 1),
                           ("too many", [2, 1, 0, 0], 2 ** 31 - 1), ("negative count", [2, 1, 0, 0], -1),
                           ("twice", [2, 2, 0, 0], 2), ("empty slot", [2, 3, 0, 0], 2),
                           ("no slot", [2, 1000000, 0, 0], 2), ("below", [-5, 1, 0, 0], 2)):
    launch(what, listed, [0, 10, 30], tiles_q=tiles, tile_count=[count])
