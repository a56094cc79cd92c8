# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every kind of bad file, shape and array, and what attn-reference-test says about it. A failure leaves no result
and no temporary file behind."""
import os
import subprocess
import sys
import tempfile

import numpy as np

DENSE = 'attn.problem @p mask(#attn.prefix<"lengths">) layout(bshd) heads(4, 2) dims(16, 8) dtype(bf16)\n'
PACKED = "attn.problem @p mask(#attn.causal) layout(thd padded) heads(2) dims(8) dtype(f16)\n"
f32, i32 = (lambda *shape: np.zeros(shape, np.float32)), (lambda *values: np.array(values, np.int32))
DENSE_INPUTS = dict(q=f32(2, 5, 4, 16), k=f32(2, 7, 2, 16), v=f32(2, 7, 2, 8), lengths=i32(3, 4))
PACKED_INPUTS = dict(q=f32(9, 2, 8), k=f32(6, 2, 8), v=f32(6, 2, 8),
                     cu_seqlens_q=i32(0, 3, 5), cu_seqlens_kv=i32(0, 2, 6),
                     padded_offsets_q=i32(0, 4, 9), padded_offsets_kv=i32(0, 2, 6))


def npy(array):
    path = os.path.join(folder, "bytes.npy")
    np.save(path, array)
    with open(path, "rb") as f:
        return f.read()


def run(text, inputs, result="o.npy"):
    """inputs by name: arrays, bytes of a file, or None for a file that is not there."""
    with open(os.path.join(folder, "p.mlir"), "w") as f:
        f.write(text)
    command = ["attn-reference-test", "p.mlir", f"--result=o={result}"]
    for name, value in inputs.items():
        command.append(f"--arg={name}={name}.npy")
        if os.path.exists(os.path.join(folder, name + ".npy")):
            os.remove(os.path.join(folder, name + ".npy"))
        if value is not None:
            with open(os.path.join(folder, name + ".npy"), "wb") as f:
                f.write(value if isinstance(value, bytes) else npy(value))
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def expect(message, text, inputs, result="o.npy"):
    done = run(text, inputs, result)
    if done.returncode != 1 or message not in done.stderr:
        sys.exit(f"expected exit status 1 and\n  {message}\ngot: {done.returncode} and\n  {done.stderr}")
    left = [name for name in os.listdir(folder) if name.startswith("o.npy")]
    assert not left, left


def files():
    good = npy(DENSE_INPUTS["q"])
    bad = lambda message, value: expect("error: `q.npy`: " + message, DENSE, {**DENSE_INPUTS, "q": value})
    bad("cannot read the file: No such file or directory", None)
    bad("expected an .npy file, got: other contents", b"PK\3\4 a zip")
    bad("expected an .npy file, got: other contents", b"")
    for size, whole in ((7, 10), (9, 10), (50, 128)):
        bad(f"truncated in the header: expected {whole} bytes up to its end, got: {size}", good[:size])
    bad("truncated in the header: expected 4294967307 bytes up to its end, got: 12", good[:6] + b"\2\0" + b"\377" * 4)
    bad("expected .npy format version 1 or 2, got: 3", good[:6] + b"\3" + good[7:])
    bad("expected a header with `descr`, `fortran_order` and `shape`, got: ", good.replace(b"'shape'", b"'shake'"))
    bad("expected a header with `descr`, `fortran_order` and `shape`, got: \\000\\001",
        good[:10] + bytes([0, 1]) + good[12:])
    bad("truncated: expected 2560 bytes of data for shape [2, 5, 4, 16], got: 2559", good[:-1])
    for lie in ("(4000000000, 4000000000)", "(0, 4000000000, 4000000000)", "(4000000000, 4000000000, 0)",
                "(99999999999999999999,)", "(2, -5)", "(-9223372036854775808,)"):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {lie}}}".encode()
        bad("expected a shape with extents from 0 on and less than 2^63 bytes of data, "
            f"got: {lie} with 4 bytes of data", good[:8] + bytes([len(header), 0]) + header + b"1234")
    large = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000, 1000000)}"
    bad("truncated: expected 4000000000000000000 bytes of data for shape [1000000, 1000000, 1000000], got: 0",
        good[:8] + bytes([len(large), 0]) + large)
    bad("expected 2560 bytes of data for shape [2, 5, 4, 16], got: 2561", good + b"\0")
    bad("expected C order, got: Fortran order", np.asfortranarray(DENSE_INPUTS["q"]))
    bad("expected dtype float32 (`<f4`), got: `<f8`", DENSE_INPUTS["q"].astype(np.float64))
    bad("expected dtype float32 (`<f4`), got: `>f4`", DENSE_INPUTS["q"].astype(">f4"))
    bad("expected dtype float32 (`<f4`), got: `a structured type`", np.zeros(3, [("x", np.float32)]))
    expect("error: `lengths.npy`: expected dtype int32 (`<i4`), got: `<i8`", DENSE,
           {**DENSE_INPUTS, "lengths": np.array([3, 4])})
    for version in ((1, 0), (2, 0)):  # both are read
        path = os.path.join(folder, "version.npy")
        with open(path, "wb") as f:
            np.lib.format.write_array(f, DENSE_INPUTS["q"], version=version)
        with open(path, "rb") as f:
            done = run(DENSE, {**DENSE_INPUTS, "q": f.read()})
        assert done.returncode == 0, done.stderr
    assert np.load(os.path.join(folder, "o.npy")).shape == (2, 5, 4, 8)
    os.remove(os.path.join(folder, "o.npy"))


def results():
    expect("error: `no/folder/o.npy`: cannot write the file: ", DENSE, DENSE_INPUTS, "no/folder/o.npy")
    expect("error: `.`: expected the path of a file to write, got: a directory or device", DENSE, DENSE_INPUTS, ".")
    expect("error: `/dev/null`: expected the path of a file", DENSE, DENSE_INPUTS, "/dev/null")


def shapes():
    dense = lambda message, **change: expect("error: " + message, DENSE, {**DENSE_INPUTS, **change})
    packed = lambda message, **change: expect("error: " + message, PACKED, {**PACKED_INPUTS, **change})
    dense("expected shape [batch, seqlen_q, 4, 16] for `q`, got: [2, 5, 4]", q=f32(2, 5, 4))
    dense("expected shape [batch, seqlen_q, 4, 16] for `q`, got: [2, 5, 3, 16]", q=f32(2, 5, 3, 16))
    dense("expected shape [2, seqlen_kv, 2, 16] for `k`, got: [1, 7, 2, 16]", k=f32(1, 7, 2, 16))
    dense("expected shape [2, 7, 2, 8] for `v`, got: [2, 6, 2, 8]", v=f32(2, 6, 2, 8))
    dense("expected shape [2] for `lengths`, got: [3]", lengths=i32(1, 2, 3))
    dense("expected one of `q`, `k`, `v`, `o`, `lse`, `lengths`, got: `x`", x=f32(1))
    expect("error: expected a tensor of shape [2, 7, 2, 8] for `v`, got: none", DENSE,
           {n: x for n, x in DENSE_INPUTS.items() if n != "v"})
    packed("expected shape [tokens_q, 2, 8] for `q`, got: [9, 2, 16]", q=f32(9, 2, 16))
    packed("expected shape [batch + 1] for `cu_seqlens_q`, got: []", cu_seqlens_q=np.int32(3))
    packed("expected shape [batch + 1] for `cu_seqlens_q`, got: [0]", cu_seqlens_q=i32())
    packed("expected shape [3] for `cu_seqlens_kv`, got: [2]", cu_seqlens_kv=i32(0, 6))
    packed("expected shape [3] for `padded_offsets_q`, got: [4]", padded_offsets_q=i32(0, 4, 9, 9))


def arrays():
    bad = lambda message, **change: expect("error: " + message, PACKED, {**PACKED_INPUTS, **change})
    bad("expected `cu_seqlens_q` to start at 0, got: 1", cu_seqlens_q=i32(1, 3, 5))
    bad("expected `cu_seqlens_kv` to ascend, got: 6 after 7 at index 2", cu_seqlens_kv=i32(0, 7, 6))
    bad("expected the last of `cu_seqlens_q` within the buffer of 9 tokens, got: 10", cu_seqlens_q=i32(0, 4, 10))
    bad("expected `padded_offsets_q` to start at 0 or later, got: -1", padded_offsets_q=i32(-1, 4, 9))
    bad("expected sequence 1 of `padded_offsets_kv` within the buffer of 6 tokens, got: 4 from 3",
        padded_offsets_kv=i32(0, 3, 6))
    bad("expected sequence 0 of `padded_offsets_kv` within the buffer of 6 tokens, got: 2 from -1",
        padded_offsets_kv=i32(-1, 2, 6))
    bad("expected `padded_offsets_q` to ascend, got: 3 after 4 at index 2", padded_offsets_q=i32(0, 4, 3))
    bad("expected the last of `padded_offsets_q` within the buffer of 9 tokens, got: 10",
        padded_offsets_q=i32(0, 4, 10))
    bad("expected a slot of at least 3 tokens for sequence 0 in `padded_offsets_q`, got: 2",
        padded_offsets_q=i32(0, 2, 9))


def pieces():
    text = PACKED.replace("thd padded", "thd pieces")
    # Sequence 0 has positions 2 and 3 in rows 0 and 1, and 0 in row 4; sequence 1 has 0 and 1 in rows 2 and 3.
    good = np.array([[0, 2, 4, 5], [0, 2, 4, 5], [2, 0, 0, 0], [0, 1, 0, 0], [2, 0, 1, 0]], np.int32)
    inputs = dict(q=f32(5, 2, 8), k=f32(5, 2, 8), v=f32(5, 2, 8))
    for name in ("q", "kv"):
        inputs |= {f"cu_seqlens_{name}": i32(0, 4, 6), f"pieces_{name}": good, f"first_pieces_{name}": i32(0, 2, 3)}
    bad = lambda message, **change: expect("error: " + message, text, {**inputs, **change})

    def changed(line, index, value):
        array = good.copy()
        array[line, index] = value
        return array

    assert run(text, inputs).returncode == 0
    os.remove(os.path.join(folder, "o.npy"))
    bad("expected shape [5, pieces of q + 1] for `pieces_q`, got: [4, 4]", pieces_q=good[:4])
    bad("expected shape [5, pieces of q + 1] for `pieces_q`, got: [5, 0]", pieces_q=good[:, :0])
    bad("expected shape [3] for `first_pieces_kv`, got: [2]", first_pieces_kv=i32(0, 3))
    bad("expected `cu_seqlens_q` to ascend, got: 3 after 4 at index 2", cu_seqlens_q=i32(0, 4, 3))
    bad("expected `pieces_q[1]` to start at 0, got: 1", pieces_q=changed(1, 0, 1))
    bad("expected `pieces_q[0]` to ascend, got: 1 after 2 at index 2", pieces_q=changed(0, 2, 1))
    bad("expected the last of `pieces_kv[0]` within the buffer of 5 tokens, got: 6", pieces_kv=changed(0, 3, 6))
    bad("expected a slot of at least 2 tokens for piece 0 in `pieces_q[0]`, got: 1", pieces_q=changed(0, 1, 1))
    bad("expected `first_pieces_q` to ascend, got: 1 after 2 at index 2", first_pieces_q=i32(0, 2, 1))
    bad("expected the last of `first_pieces_q` to be the number of pieces, 3, got: 2", first_pieces_q=i32(0, 2, 2))
    bad("expected the last entry of `pieces_kv[3]` to be 0, got: 1", pieces_kv=changed(3, 3, 1))
    bad("expected each of the 3 pieces once in `pieces_q[4]`, got: 3 at index 0", pieces_q=changed(4, 0, 3))
    bad("expected each of the 3 pieces once in `pieces_q[4]`, got: -1 at index 1", pieces_q=changed(4, 1, -1))
    bad("expected each of the 3 pieces once in `pieces_q[4]`, got: 2 at index 1", pieces_q=changed(4, 1, 2))
    bad("expected pieces of sequence 0 in `pieces_q[4]` from index 0 on, got: piece 0 of sequence 1",
        pieces_q=changed(3, 0, 1))
    bad("expected positions below 4 of sequence 0 in `pieces_kv`, got: 3 to 5 of piece 0", pieces_kv=changed(2, 0, 3))
    bad("expected positions below 2 of sequence 1 in `pieces_kv`, got: -1 to 1 of piece 1", pieces_kv=changed(2, 1, -1))
    bad("expected each position of sequence 0 in one piece of `pieces_q` at most, got: 2 in two",
        pieces_q=changed(2, 2, 2))
    expect("error: expected at most 1 piece of sequence 0 in `first_pieces_q`, got: 2",
           text.replace("thd pieces)", "thd pieces) single_pieces"), inputs)
    ids = dict(segment_ids_q=i32(*[1] * 5), segment_ids_kv=i32(*[1] * 6))
    expect("error: expected the last of `cu_seqlens_q` within the buffer of 5 tokens, got: 6",
           text.replace("#attn.causal", "#attn.document"), {**inputs, **ids})


def block_maps():
    text = DENSE.replace('#attn.prefix<"lengths">', '#attn.block_map<"offsets", "columns", q = 2, kv = 4, per_head>')
    inputs = {n: x for n, x in DENSE_INPUTS.items() if n != "lengths"}
    lists = dict(offsets=i32(*[[0, 1, 1, 3]] * 4), columns=i32(1, 0, 1))
    bad = lambda message, **change: expect("error: " + message, text, {**inputs, **lists, **change})
    bad("expected shape [4, rows of blocks + 1] for `offsets`, got: [4]", offsets=i32(0, 1, 1, 3))
    bad("expected shape [4, rows of blocks + 1] for `offsets`, got: [4, 0]", offsets=i32(*[[]] * 4))
    bad("expected shape [entries] for `columns`, got: [1, 3]", columns=i32([1, 0, 1]))
    bad("expected `offsets` within the 3 entries of `columns`, got: -1 at index 4",
        offsets=i32(*[[0, 3]] * 2, *[[-1, 3]] * 2))
    bad("expected `offsets` within the 3 entries of `columns`, got: 4 at index 7", offsets=i32(*[[0, 3]] * 3, [0, 4]))
    bad("expected `offsets` to ascend, got: 1 after 2 at index 2", offsets=i32(*[[0, 2, 1]] * 4))
    bad("expected numbers of blocks of 4 keys, of which there are 2, in `columns`, got: 2 at index 1",
        columns=i32(1, 2, 1))
    bad("expected numbers of blocks of 4 keys, of which there are 2, in `columns`, got: -1 at index 0",
        columns=i32(-1, 0, 1))


def parents():
    text = DENSE.replace('#attn.prefix<"lengths">', '#attn.ancestors<"parent">')
    inputs = {n: x for n, x in DENSE_INPUTS.items() if n != "lengths"}
    bad = lambda message, *lines: expect("error: " + message, text, {**inputs, "parent": i32(*lines)})
    fine = [-1, 0, 0, -1, 3, 1, 2]
    bad("expected shape [2, 7] for `parent`, got: [7]", *fine)
    bad("expected an earlier key of the sequence, or -1, in `parent` for key 2 of sequence 1, got: 2", fine,
        [-1, 0, 2, 0, 0, 0, 0])
    bad("expected an earlier key of the sequence, or -1, in `parent` for key 0 of sequence 0, got: 5",
        [5, 0, 0, 0, 0, 0, 0], fine)
    bad("expected an earlier key of the sequence, or -1, in `parent` for key 6 of sequence 1, got: -2", fine,
        [-1, 0, 0, 0, 0, 0, -2])
    # 6 keys of a padded buffer, whose padding is nobody's.
    text = PACKED.replace("#attn.causal", '#attn.ancestors<"parent">')
    assert "ancestors" in text
    expect("error: expected an earlier key of the sequence, or -1, in `parent` for key 1 of sequence 0, got: 1", text,
           {**PACKED_INPUTS, "parent": i32(*[-1, 1] * 3)})


def block_lists():
    text = DENSE.replace('#attn.prefix<"lengths">', '#attn.block_list<"lists", rows = 2, keys = 4>')
    inputs = {n: x for n, x in DENSE_INPUTS.items() if n != "lengths"}
    bad = lambda message, lists: expect("error: " + message, text, {**inputs, "lists": lists})
    bad("expected shape [2, 2, 3, entries] for `lists`, got: [2, 2, 4, 1]", i32(*[[[[0]] * 4] * 2] * 2))
    bad("expected shape [2, 2, 3, entries] for `lists`, got: [2, 3, 1]", i32(*[[[0]] * 3] * 2))
    text = text.replace("bshd", "thd padded").replace("dims(16, 8) dtype(bf16)", "dims(8) dtype(f16)")
    text = text.replace("heads(4, 2)", "heads(2)")
    inputs = PACKED_INPUTS
    bad("expected shape [2, 6, entries] for `lists`, got: [2, 5, 1]", i32(*[[[0]] * 5] * 2))


with tempfile.TemporaryDirectory() as folder:
    for test in (files, results, shapes, arrays, pieces, block_maps, block_lists, parents):
        test()
print("all refused")
