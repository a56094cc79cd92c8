# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m attnc, the cache and packs, in processes with a cache of their own."""
import json
import os
import subprocess
import sys
import types

import attnc
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
    text = run("-m", "attnc", "explain", "--mask=#attn.band<left = 255, right = 0>", "-o", "seqlen_q=1024",
               "--target=sm_90a", "--svg=map.svg")
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
              "for f in folder.glob('*.so'):\n"
              "    os.chmod(f, 0o600)\n"
              "    f.write_bytes(f.read_bytes()[:-1] + b'?')")
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


def rows_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_bench(run, tmp_path):
    """Names, sizes and rates of rows, for a file and for a mask; operations counted by hand."""
    file = tmp_path / "times.jsonl"
    table = run("-m", "attnc", "bench", "p.mlir", "--seqlen=33,1x70", "--batch=3", "--iterations=3", "--target=cpu",
                f"--json={file}").splitlines()
    rows = rows_of(file)
    assert table[0].endswith(", cpu, attnc 0.1.0") and len(table) == 2 + len(rows)
    assert [(r["name"], r["pass"], r["batch"], r["seqlen_q"], r["seqlen_kv"]) for r in rows] == [
        (*names, 3, *sizes) for sizes in ((33, 33), (1, 70)) for names in (("p", "forward"), ("g", "backward"))]
    for row, text in zip(rows, table[2:]):
        assert 0 < row["ms_min"] <= row["ms_median"] and row["iterations"] == 3 and row["exact"]
        pairs = 33 * 34 // 2 if row["seqlen_q"] == 33 else 1
        flops = 3 * 2 * pairs * 4 * 16 * (2.5 if row["pass"] == "backward" else 1)
        assert row["tflops"] == pytest.approx(flops / row["ms_median"] / 1e9)
        assert text.split()[:2] == [row["name"], row["pass"]] and text.split()[-1] == f"{row['tflops']:.4g}"
    run("-m", "attnc", "bench", "--mask=#attn.full", "--layout=thd", "--heads=2,1", "--dims=16,8", "--dtype=f16",
        "--lengths=5,0,9", "--pass=backward", "--warmup=0", "--target=cpu", f"--json={file}")
    (row,) = rows_of(file)
    assert (row["name"], row["lengths_q"], row["target"]) == ("attention_gradient", [5, 0, 9], "cpu")
    assert row["tflops"] == pytest.approx(2.5 * 2 * 2 * (25 + 81) * (16 + 8) / row["ms_median"] / 1e9)


def test_bench_arrays(run, tmp_path):
    """Arrays of masks are given, and pairs are not counted then; those of layouts and score modifiers are made up."""
    np = pytest.importorskip("numpy")
    ids, file = np.repeat(np.arange(4, dtype=np.int32), 8)[None], tmp_path / "times.jsonl"
    np.savez(tmp_path / "ids.npz", ids_rows=ids, ids_keys=ids)
    np.savez(tmp_path / "wide.npz", ids_rows=ids.astype(np.int64), ids_keys=ids)
    text = ('attn.problem @d mask(#attn.document<"ids_rows", "ids_keys">) layout(bshd) heads(2) dims(16) dtype(bf16) '
            'score([#attn.alibi]) dropout(0.1, "seed") // ends here')
    bench = "-m", "attnc", "bench", "-", "--seqlen=32", "--pass=forward", "--target=cpu"
    run(*bench, f"--arrays={tmp_path}/ids.npz", f"--json={file}", text=text)
    assert [(row["name"], row["tflops"]) for row in rows_of(file)] == [("d", None)]
    for more, message in (((), "expected --arrays=FILE.npz with 'ids_rows', int32 [batch, seqlen_q], got: none"),
                          ((f"--arrays={tmp_path}/wide.npz",), "expected 'ids_rows' to be"),
                          (("--batch=2", f"--arrays={tmp_path}/ids.npz"), "`ids_rows`")):
        assert message in run(*bench, *more, text=text, code=1)
    assert "got also: ids_rows, ids_keys" in run(*bench, f"--arrays={tmp_path}/ids.npz", text=PROBLEM, code=1)


def test_bench_errors(run):
    small = "--seqlen=8", "--heads=1", "--dims=16"
    for options, code, message in (
            (("--lengths=1,2",), 1, "expected --batch and --seqlen for sequences that are not packed, got: --lengths"),
            (("--lengths=1,2", "--batch=2"), 1, "expected --lengths, or --batch and --seqlen, got: both"),
            (("p.mlir", "--dims=16"), 1, "expected a file or --mask with its options, got: both 'p.mlir' and --dims"),
            (("p.mlir", "--name=g", "--pass=forward"), 1, "expected --pass=backward with --name=g, got: forward"),
            (("p.mlir", "--name=h"), 1, "got: @h"), (("nothing.mlir",), 1, "No such file"),
            (("--seqlen=0",), 2, "expected one or two integers from 1 on, got: 0"),
            (("--lengths=1,x",), 2, "expected integers from 0 on, got: 1,x"),
            (("--iterations=1,2",), 2, "expected an integer from 1 on, got: 1,2"),
            (("--mask=#attn.chunk<0>",), 1, "chunk"), (("--target=sm_70",), 1, "expected target")):
        assert message in run("-m", "attnc", "bench", "--target=cpu", *options, code=code), options
    unsupported = "attn.problem @p mask(#attn.causal) layout(bshd) heads(1) dims(16) dtype(bf16) outputs(o)"
    told = run("-m", "attnc", "bench", "-", "--seqlen=8", "--target=cpu", text=unsupported, code=1)
    assert "p_gradient, 1 of 8: " in told
    segments = "attn.problem @p mask(#attn.causal) layout(thd padded) heads(1) dims(16) dtype(bf16) segments(4)"
    assert "got: one with segments" in run("-m", "attnc", "bench", "-", "--target=cpu", text=segments, code=1)
    ids = "attn.segments @s mask(#attn.causal) segments(4)"
    assert "got: the attn.segments @s" in run("-m", "attnc", "bench", "-", "--target=cpu", text=ids, code=1)
    no_torch = ("import sys; sys.modules['torch'] = None; from attnc.__main__ import main\n"
                "sys.argv[1:] = %r; sys.exit(main())")
    assert "expected PyTorch, whose CUDA events time kernels for sm_90a, got: none installed; --target=cpu" in run(
        "-c", no_torch % ["bench", *small, "--target=sm_90a"], code=1)
    no_numpy = no_torch.replace("torch", "numpy")
    assert "expected NumPy, whose arrays this needs, got: none installed" in run(
        "-c", no_numpy % ["bench", *small, "--target=cpu"], code=1)


def test_queued_ms():
    """Launches are timed in turn, and again behind a longer sleep where the device woke up before they were queued."""
    from attnc import _timing
    done, sleeps = [], []

    class Event:
        def __init__(self, enable_timing=False):
            self.at = None

        def record(self):
            self.at = len(done)

        def query(self):
            return sleeps[-1] < 30_000_000

        def elapsed_time(self, other):
            return sum(done[self.at:other.at])
    cuda = types.SimpleNamespace(Event=Event, _sleep=sleeps.append, synchronize=lambda: None)
    memory = types.SimpleNamespace(zero_=lambda: done.append(100))
    fake, launches = types.SimpleNamespace(cuda=cuda), [lambda: done.append(1), lambda: done.append(2)]
    assert _timing.queued_ms(fake, launches, memory) == [1, 2]
    assert sleeps == [2_000_000, 8_000_000, 32_000_000] and done == [100, 1, 100, 2] * 3
    Event.query = lambda self: True
    with pytest.raises(attnc.Error, match="expected 2 launches to be queued within a second, got: more"):
        _timing.queued_ms(fake, launches)
