# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Command lines of the scripts for a GPU, which are read before anything of a framework is imported."""
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent


def run(script, *options):
    done = subprocess.run([sys.executable, HERE / script, *options], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("script, own", [
    ("gpu.py", ()), ("gpu_jax.py", ()),
    ("gpu_zoo.py", ("--gym", "--only", "--shard", "--jobs", "--seconds", "--attn-bench", "--device", "--prepare"))])
def test_options(script, own, tmp_path):
    code, text, _ = run(script, "--help")
    assert code == 0 and script in text
    for option in ("--out", "--commit", *own):
        assert option in text
    code, _, text = run(script, "--out", str(tmp_path / "lines"), "--commit", "H", "--surprise")
    assert code == 2 and text.endswith("error: unrecognized arguments: --surprise\n")
    assert not (tmp_path / "lines").exists()


def test_report(tmp_path):
    """Lines go to the file, too; the exit status says whether a check failed, also by an exception."""
    (tmp_path / "script.py").write_text(
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\nfrom gpu_report import options, report, run\n"
        "args = options('', lambda parser: parser.add_argument('--more'))\n"
        "def good():\n    report('good', True, more=args.more)\n"
        "def bad():\n    raise ValueError('why')\n"
        "run((good, bad) if args.more else (good,), gpu='none')\n")
    for more, code in ((("--more=1",), 1), ((), 0)):
        found, text, _ = run(tmp_path / "script.py", "--out", str(tmp_path / "lines"), "--commit", "H", *more)
        assert found == code and (tmp_path / "lines").read_text() == text
        machine, good, *others = text.splitlines()
        assert '"gpu": "none"' in machine and '"commit": "H"' in machine and '"check": "good", "ok": true' in good
        assert others == (['{"check": "bad", "ok": false, "error": "ValueError: why"}'] if more else [])
