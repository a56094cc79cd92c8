# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attn-run with 50 random sets of lengths; counts who compiled."""
import random
import subprocess
import sys

random.seed(11)
origins = []
for _ in range(50):
    lengths = ",".join(str(random.choice((0, random.randrange(1, 300)))) for _ in range(random.randrange(1, 6)))
    run = subprocess.run(["attn-run", sys.argv[1], "--target=cpu", f"--lengths-q={lengths}", "--check",
                          f"--padding={random.randrange(9)}"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    origins.append("kernel compiled" in run.stdout)
print(f"{sum(origins)} compiled, {len(origins) - sum(origins)} from the cache")
