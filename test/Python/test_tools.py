# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m attnc, the cache and packs, in processes with a cache of their own."""
import os
import subprocess
import sys

import pytest

PROBLEM = "attn.problem @p mask(#attn.causal) layout(bshd) heads(2) dims(16) dtype(bf16)\nattn.backward @g of(@p)\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    environment = {**os.environ, "ATTN_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(*arguments, code=0, text=None):
        made = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, input=text,
                              cwd=folder)
        assert made.returncode == code, made.stdout + made.stderr
        return made.stdout if code == 0 else made.stderr

    (folder / "p.mlir").write_text(PROBLEM)
    return run


def test_explain(run):
    text = run("-m", "attnc", "explain", "--mask=#attn.band<left = 255, right = 0>", "-o", "seqlen_q=1024", "--target=sm_90a",
               "--svg=map.svg")
    assert "1024 queries down" in text and "warp-specialized tiles" in text
    assert run("-c", "print(open('map.svg').read()[:4])") == "<svg\n"
    assert "causal" in run("-m", "attnc", "explain", "-", text=PROBLEM)
    assert "`seqlen`" in run("-m", "attnc", "explain", "-o", "seqlen=4", code=1)
    assert "attnc: error: [Errno 2]" in run("-m", "attnc", "explain", "nothing.mlir", code=1)


def test_warm_and_cache(run):
    assert run("-m", "attnc", "warm", "p.mlir") == "p for cpu: compiled\ng for cpu: compiled\n"
    assert run("-m", "attnc", "warm", "p.mlir") == "p for cpu: already there\ng for cpu: already there\n"
    listed = run("-m", "attnc", "cache", "list")
    assert listed.count("\n") == 5 and listed.splitlines()[-1].startswith("4 entries in ")  # three kernels of gradients
    assert run("-m", "attnc", "cache", "verify") == "0 bad entries\n"
    assert run("-m", "attnc", "cache", "path").rstrip().endswith("cache")
    damage = ("import attnc.cache as c, pathlib, os\n"
              "folder = pathlib.Path(c.list()[0]['entries'][0]['directory'])\n"
              "[(os.chmod(f, 0o600), f.write_bytes(f.read_bytes()[:-1] + b'?')) for f in folder.iterdir() if f.suffix == '.so']")
    run("-c", damage)
    assert run("-c", "import attnc.cache as c; print(len(c.verify()))") == "1\n"
    assert run("-m", "attnc", "cache", "prune", "--bytes=0") == "removed 4 entries\n"
    assert "0 entries" in run("-m", "attnc", "cache", "list")


def test_pack(run):
    code = ("import attnc\n"
            "p = attnc.Problem(attnc.causal(), heads=2, dims=16, layout='thd', name='packed')\n"
            "attnc.pack([p, p.gradient()], 'p.pack', sizes=[dict(batch=400, total_q=1600, total_kv=1600)])\n"
            "print(open('p.pack', 'rb').read(8))")
    assert run("-c", code) == "b'attnpack'\n"
    same = "import attnc; p = attnc.Problem(attnc.causal(), heads=2, dims=16); attnc.pack([p, p], 'q.pack')"
    assert "ProblemError: expected problems of different names, got: 'attention' again" in run("-c", same, code=1)
