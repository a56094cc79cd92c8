# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attnLaunchReuseMetadata on the CPU, through ctypes: attention anew, what was found out of ids as it was."""
import ctypes

import numpy as np
from on_host import aligned, bind, c, compiled

rng, s = np.random.default_rng(0), 300
arrays = {name: (aligned((1, s, 2, 16), np.uint16), 0) for name in "qkvo"}
for name in "qkv":
    arrays[name][0][...] = rng.standard_normal((1, s, 2, 16)).astype(np.float32).view(np.uint32) >> 16
arrays["lse"] = (aligned((1, 2, s), np.float32), 2)
ids = np.repeat(np.arange(1, 7, dtype=np.int32), 50)[None]
arrays["segment_ids_q"] = arrays["segment_ids_kv"] = (ids, 3)
o, lse = arrays["o"][0], arrays["lse"][0]
kernel = compiled(b"attn.problem @p mask(#attn.document) layout(bshd) heads(2) dims(16) dtype(bf16)")
tensors, workspace = bind(kernel, arrays)


def run(launch):
    o[...], lse[...] = 0x7fc0, np.nan
    failed = launch(kernel, tensors, ctypes.c_void_p(workspace.ctypes.data), None) != 0
    if failed:
        print("error:", c.attnLastError().decode())
    return o.copy(), lse.copy()


first = run(c.attnLaunch)
arrays["v"][0][...] = rng.standard_normal((1, s, 2, 16)).astype(np.float32).view(np.uint32) >> 16  # the next layer's
again, anew = run(c.attnLaunchReuseMetadata), run(c.attnLaunch)
print("same as anew:", all(np.array_equal(a, b) for a, b in zip(again, anew)), "- other than before:",
      not np.array_equal(again[0], first[0]))
workspace[...] = 0  # lists of no tiles
emptied = run(c.attnLaunchReuseMetadata)
print("takes what is there:", np.all(emptied[0] == 0) and np.all(emptied[1] == -np.inf))
print("and anew:", np.array_equal(run(c.attnLaunch)[0], anew[0]))

plain = compiled(b"attn.problem @plain mask(#attn.causal) layout(bshd) heads(2) dims(16) dtype(bf16)")
kernel = plain
tensors, workspace = bind(kernel, arrays)
print("nothing ahead:", np.array_equal(run(c.attnLaunchReuseMetadata)[0], run(c.attnLaunch)[0]))

by_ids = compiled(b"attn.problem @by_ids mask(#attn.full) layout(thd padded) heads(2) dims(16) dtype(bf16) segments(8)")
status = np.zeros(1, np.int32)
packed = {name: (arrays[name][0][0], 0) for name in "qkvo"}
packed.update(lse=(lse[0], 2), ids_q=(ids, 3), ids_kv=(ids, 3), status=(status, 3))
tensors, workspace = bind(by_ids, packed)
status[...] = 7  # the kernel that writes it runs again
assert c.attnLaunchReuseMetadata(by_ids, tensors, ctypes.c_void_p(workspace.ctypes.data), None) == 0
print("segments have their status:", not status.any())
