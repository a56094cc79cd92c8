# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Everything that attn-run must refuse: it says what it expected and what it got, ends with status 1, and
leaves the file of an older result as it was and no other file behind."""
import os
import sys

import numpy as np
from run import attn_run, folder, npy_bytes, path_of, write

OLD = b"the result of an earlier run"
DENSE = "attn.problem @p mask({mask}) layout(bshd) heads({heads}) dims({dims}) dtype(bf16)\n"
PACKED = "attn.problem @p mask(#attn.causal) layout({layout}) heads(2) dims(8) dtype(f16)\n"
f32, i32 = (lambda *shape: np.zeros(shape, np.float32)), (lambda *values: np.array(values, np.int32))
QKV = dict(q=f32(2, 5, 4, 16), k=f32(2, 7, 2, 16), v=f32(2, 7, 2, 16))
checked = 0


def dense(mask="#attn.causal", heads="4, 2", dims="16"):
    return DENSE.format(mask=mask, heads=heads, dims=dims)


def expect(message, problem=None, inputs=QKV, result="o.npy", **named):
    global checked
    checked += 1
    problem = dense() if problem is None else problem
    if result == "o.npy":
        write("o.npy", OLD)
    done, _ = attn_run(problem, inputs, {"o": result}, **named)
    if done.returncode != 1 or message not in done.stderr or "Stack dump" in done.stderr:
        sys.exit(f"{problem}expected exit status 1 and\n  {message}\ngot: {done.returncode} and\n  {done.stderr}")
    if "max error" in done.stdout:
        sys.exit(f"{problem}reported a result in spite of\n  {message}")
    if result == "o.npy":
        with open(path_of("o.npy"), "rb") as file:
            assert file.read() == OLD, "the old result is gone"
    left = [name for name in os.listdir(folder) if name.startswith("o.npy") and name != "o.npy"]
    assert not left, left


def problems():
    expect("p.mlir:1:13: error: ", "attn.problem")
    expect("error: `p.mlir` is not a valid module", "attn.problem @p mask(")
    expect("error: expected an `attn.problem` in the module, got: none", "module {}\n", {})
    expect("unknown attribute `forest` in dialect `attn`", dense("#attn.forest<8>"))
    expect("unknown attribute `casual` in dialect `attn`, which is near `#attn.causal`", dense("#attn.casual"))
    expect("expected left + right >= 0 in a band (else no pair is visible), got: left = 2, right = -3",
           dense("#attn.band<left = 2, right = -3>"))
    expect("expected no parameters of `#attn.full`", dense("#attn.full<8>"))
    expect("expected a number of masks that divides the", PACKED.format(layout="thd").replace(
        "#attn.causal", "#attn.heads<#attn.causal, #attn.full, #attn.causal>"), {})
    expect("expected heads to be a positive multiple of kv_heads (at most 65536), got: heads = 4, kv_heads = 3",
           dense(heads="4, 3"))
    for dim, near in ((0, "is 8"), (4, "is 8"), (20, "are 16 and 24"), (36, "are 32 and 40"), (576, "is 512"),
                      (-8, "is 8")):
        expect(f"expected dim_qk to be a multiple of 8 from 8 to 512, got: {dim}; near it {near}\n", dense(dims=dim))
    two = dense() + dense().replace("@p", "@other")
    expect("error: expected the name of one of @p, @other, got: none", two)
    expect("error: expected one of the module's problems @p, @other, got: @third", two, flags=["--problem=third"])


def files():
    good = npy_bytes(QKV["q"])

    def bad(message, value):
        expect("error: `q.npy`: " + message, inputs={**QKV, "q": value})

    bad("cannot read the file: No such file or directory", None)
    bad("expected an .npy file, got: other contents", b"PK\3\4 a zip")
    bad("expected an .npy file, got: other contents", b"")
    bad("truncated in the header: expected 128 bytes up to its end, got: 50", good[:50])
    bad("truncated: expected 2560 bytes of data for shape [2, 5, 4, 16], got: 2559", good[:-1])
    bad("expected 2560 bytes of data for shape [2, 5, 4, 16], got: 2561", good + b"\0")
    bad("expected dtype float32 (`<f4`), got: `<f8`", QKV["q"].astype(np.float64))
    bad("expected dtype float32 (`<f4`), got: `<f2`", QKV["q"].astype(np.float16))
    bad("expected C order, got: Fortran order", np.asfortranarray(QKV["q"]))
    expect("error: expected shape [batch, seqlen_q, 4, 16] for `q`, got: [2, 5, 4]", inputs={**QKV, "q": f32(2, 5, 4)})
    expect("error: expected shape [2, seqlen_kv, 2, 16] for `k`, got: [3, 7, 2, 16]",
           inputs={**QKV, "k": f32(3, 7, 2, 16)})
    expect("error: expected shape [2, 7, 2, 16] for `v`, got: [2, 8, 2, 16]", inputs={**QKV, "v": f32(2, 8, 2, 16)})
    lengths = dense('#attn.prefix<"lengths">')
    expect("error: `lengths.npy`: expected dtype int32 (`<i4`), got: `<i8`", lengths,
           {**QKV, "lengths": np.array([3, 4])})
    expect("error: expected shape [2] for `lengths`, got: [3]", lengths, {**QKV, "lengths": i32(3, 4, 5)})
    write("x.npy", QKV["q"])
    expect("error: expected --arg=NAME=FILE with an input of @p, got: x=x.npy", flags=["--arg=x=x.npy"])
    expect("error: expected --arg=NAME=FILE with an input of @p, got: o=x.npy", flags=["--arg=o=x.npy"])
    expect("error: expected --arg=NAME=FILE with an input of @p, got: q", flags=["--arg=q"])
    for path in ("/dev/zero", "a_pipe", "."):
        if path == "a_pipe":
            os.mkfifo(path_of(path))
        expect(f"error: `{path}`: expected the path of a regular file, got: a directory, device or pipe", inputs={},
               flags=[f"--arg=q={path}"])


def results():
    os.makedirs(path_of("a_folder"), exist_ok=True)
    expect("error: `a_folder`: expected the path of a file to write, got: a directory or device", result="a_folder")
    expect("error: `/dev/null`: expected the path of a file to write, got: a directory or device", result="/dev/null")
    expect("error: `no/such/o.npy`: cannot write the file: No such file or directory", result="no/such/o.npy")
    expect("error: expected --result=NAME=FILE with a result of @p, got: q=x.npy", flags=["--result=q=x.npy"])
    expect("error: expected --result=NAME=FILE with a result of @p, got: lse", flags=["--result=lse"])
    expect("error: expected each result once, got: --result=o=o.npy as well", result="o.npy",
           flags=["--result=o=other.npy"])
    for name, linked, link in (("soft", "p.mlir", os.symlink), ("hard", "p.mlir", os.link),
                               ("soft.npy", "k.npy", os.symlink)):
        write(linked, b"")  # no longer there if it could be written over
        link(linked if link == os.symlink else path_of(linked), path_of(name))
        expect(f"error: expected a result's file to be none of the inputs, got: `{name}`, which is `{linked}`",
               result=name)
        os.remove(path_of(name))
    for name, same in (("p.mlir", "p.mlir"), ("./p.mlir", "p.mlir"), (path_of("v.npy"), "v.npy")):
        expect(f"error: expected a result's file to be none of the inputs, got: `{name}`, which is `{same}`",
               result=name)
    own = "error: expected a file of its own for each result, got: "
    for one, two in (("x/new.npy", "x/new.npy"), ("new.npy", "./new.npy"), ("x/new.npy", "y/new.npy"),
                     ("x.npy", "y.npy")):
        for folder_or_file, target in (("y", "x"), ("y.npy", "x.npy")):
            if not os.path.lexists(path_of(folder_or_file)):
                os.makedirs(path_of("x"), exist_ok=True)
                os.symlink(target, path_of(folder_or_file))
        expect(own + f"`{two}` and `{one}`", result=one, flags=[f"--result=lse={two}"])
    assert not os.path.exists(path_of("new.npy")) and not os.listdir(path_of("x"))


def packed():
    thd, padded = PACKED.format(layout="thd"), PACKED.format(layout="thd padded")
    tokens = dict(q=f32(9, 2, 8), k=f32(9, 2, 8), v=f32(9, 2, 8))
    good = dict(tokens, cu_seqlens_q=i32(0, 4, 9), cu_seqlens_kv=i32(0, 4, 9))
    expect("error: expected shape [3] for `cu_seqlens_kv`, got: [4]", thd, {**good, "cu_seqlens_kv": i32(0, 2, 4, 9)})
    expect("error: expected shape [batch + 1] for `cu_seqlens_q`, got: [0]", thd, {**good, "cu_seqlens_q": i32()})
    for side in ("q", "kv"):
        name = "cu_seqlens_" + side
        expect(f"`{name}`", thd, {**good, name: i32(0, 5, 4)})
        expect(f"`{name}`", thd, {**good, name: i32(0, 4, 10)})
        expect(f"`{name}`", thd, {**good, name: i32(-1, 4, 9)})
        expect(f"`{name}`", thd, {**good, name: i32(0, -2, 9)})
    offsets = dict(good, cu_seqlens_q=i32(0, 3, 5), cu_seqlens_kv=i32(0, 3, 5), padded_offsets_q=i32(0, 4, 9),
                   padded_offsets_kv=i32(1, 4, 9))
    for values in ((0, 2, 9), (0, 4, 10), (-1, 4, 9), (5, 4, 9), (0, 9, 4)):
        expect("`padded_offsets_q`", padded, {**offsets, "padded_offsets_q": i32(*values)})
    for values in ((-1, 4, 9), (0, 8, 9), (7, 4, 9)):  # in any order, but within the rows
        expect("`padded_offsets_kv`", padded, {**offsets, "padded_offsets_kv": i32(*values)})
    expect("error: expected shape [3] for `padded_offsets_q`, got: [2]", padded,
           {**offsets, "padded_offsets_q": i32(0, 9)})


def flags():
    forms = ("error: expected target `cpu`, `sm_90a`, `sm_80` or `sm_80:<chip>` with chip 80, 86, 87, 89, 90, 100 or "
             "120, got: ")
    for target in ("sm_90", "gpu", "cpu:1", "sm_80:", "sm_80:91", "sm_80:x"):
        expect(forms + target, target=target)
    thd = PACKED.format(layout="thd")
    for size in ("--batch=-1", "--seqlen-q=-1", "--seqlen-kv=-2", "--seqlen-kv=99999999999", "--padding=-3"):
        option, number = size.split("=")
        expect(f"error: expected sizes from 0 to 2^24 in {option}, got: {number}", inputs={}, flags=[size])
    for size in ("--lengths-q=3,-5", "--lengths-kv=3,99999999999"):
        option, numbers = size.split("=")
        expect(f"error: expected sizes from 0 to 2^24 in {option}, got: " + numbers.split(",")[1], thd, {},
               flags=[size])
    layouts()
    contradictions()


def layouts():
    """Sizes of what the problem has not."""
    thd, padded = PACKED.format(layout="thd"), PACKED.format(layout="thd padded")
    ids = padded.replace("dtype(f16)", "dtype(f16) segments(4)")
    mixed = PACKED.format(layout="thd, bshd, bshd, thd")
    for problem, flag, instead in (
            (thd, "--seqlen-q=3", "--lengths-q"), (thd, "--seqlen-kv=3", "--lengths-kv"),
            (mixed, "--seqlen-q=3", "--lengths-q"), (mixed, "--lengths-kv=3,4", "--batch and --seqlen-kv"),
            (dense(), "--lengths-q=3,4", "--batch and --seqlen-q"),
            (dense(), "--lengths-kv=3", "--batch and --seqlen-kv"),
            (ids, "--lengths-q=3,4", "--batch and --seqlen-q"), (ids, "--lengths-kv=3,4", "--batch and --seqlen-kv"),
            (thd, "--padding=3", "a padded layout"), (dense(), "--padding=3", "a padded layout")):
        option = flag.split("=")[0]
        expect(f"error: expected {instead} in place of {option}, got: {option} with ", problem, {}, flags=[flag])
    expect("error: expected as many --lengths-kv as --lengths-q, got: 3 and 2", thd, {},
           flags=["--lengths-q=3,4", "--lengths-kv=3,4,5"])


def contradictions():
    """Options that say otherwise than files or other options, or of which nothing is made."""
    thd = PACKED.format(layout="thd")
    lengths = dict(cu_seqlens_q=i32(0, 4, 9), cu_seqlens_kv=i32(0, 4, 9))

    def otherwise(problem, inputs, flag, follows):
        expect(f"error: expected {follows}, which follows from other options and files, got: {flag}", problem, inputs,
               flags=flag.split())

    otherwise(dense(), {"q": QKV["q"]}, "--batch=3", "--batch=2")
    otherwise(dense(), {"q": QKV["q"]}, "--seqlen-q=6", "--seqlen-q=5")
    otherwise(dense(), {"k": QKV["k"]}, "--seqlen-kv=6", "--seqlen-kv=7")
    otherwise(thd, lengths, "--lengths-q=4,4", "--lengths-q=4,5")
    otherwise(thd, {"cu_seqlens_q": lengths["cu_seqlens_q"]}, "--lengths-kv=4,4", "--lengths-kv=4,5")
    expect("error: expected --batch=2, which follows from other options and files, got: --batch=3", thd, {},
           flags=["--lengths-q=4,4", "--batch=3"])
    expect("error: expected inputs to make up with --seed, got: files for all of them", flags=["--seed=3"])
    write("x.npy", QKV["q"])
    expect("error: expected each input once, got: --arg=q=q.npy as well", flags=["--arg=q=x.npy"])


for suite in (problems, files, results, packed, flags):
    suite()
print(f"{checked} bad inputs refused")
