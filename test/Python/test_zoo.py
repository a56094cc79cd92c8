# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The masks and score modifiers of attention-gym, traced.

zoo.expected has a line for each: its text and arrays, or why it is refused; `python test_zoo.py` prints such lines.
Texts mean what the functions do, for 96 and for 128 positions, and run on the CPU target, compared with float64.
"""
import importlib
import os
import pathlib
import pkgutil
import re
import types

import attnc
import pytest
from attnc.trace import trace_mask, trace_score
from trace_kernels import attention, dense, inputs, modified, reference
from trace_reader import scored, shown

torch = pytest.importorskip("torch")
gym = pytest.importorskip("attn_gym")
masks, mods = (importlib.import_module(f"attn_gym.{name}") for name in ("masks", "mods"))
EXPECTED = pathlib.Path(__file__).with_name("zoo.expected")
BATCH, HEADS, LENGTHS = 2, 4, (96, 128)
LONGEST = max(LENGTHS)


makers = importlib.import_module("zoo").Makers(BATCH, HEADS, LONGEST)
MASKS, SCORES = ({name: make() for name, make in made.items()} for made in (makers.masks, makers.scores))


def traced(name):
    return trace_mask(MASKS[name]) if name in MASKS else trace_score(SCORES[name])


def line(name):
    """What zoo.expected says of it."""
    try:
        value = traced(name)
    except attnc.TraceError as error:
        folder, message = re.escape(os.path.dirname(gym.__file__)), str(error).splitlines()[0]
        return f"{name}: refused, " + re.sub(f"^{folder}/(.*?):[0-9]+", lambda found: found[1], message)
    arrays = ", ".join(f"{key}[{', '.join(array.axes)}]" for key, array in value.arrays.items())
    return f"{name}: {value}" + (f" with {arrays}" if arrays else "")


def test_expected():
    """Every mask and score is as it was; a new one of attention-gym fails here until it is entered."""
    lines = [line(name) for name in (*MASKS, *SCORES)]
    assert lines == EXPECTED.read_text().splitlines()
    assert sum(": refused" not in text for text in lines[:len(MASKS)]) >= 17


def test_complete():
    entered = {name.split()[0] for name in (*MASKS, *SCORES)}
    for package in (masks, mods):
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, types.FunctionType) and value.__module__ == module.name and (
                        name.startswith("generate_") and "random" not in name or name.endswith(("_mask", "_mask_mod"))
                        and not name.startswith(("create", "_"))):
                    assert name in entered, name


TRACED = [name for name in (*MASKS, *SCORES) if ": refused" not in line(name)]
VARIANTS = ("doc_mask_mod prefix", "mod sink", "approx", "gelu", "sigmoid", "jetspec", "vsa")  # without kernels


@pytest.mark.parametrize("name", TRACED)
def test_means_the_same(name):
    """The text, as its documentation reads it, and the function."""
    value = traced(name)
    for length in LENGTHS:
        sizes = BATCH, HEADS, length, length
        if name in MASKS:
            assert (shown(value, sizes) == dense(MASKS[name], sizes).numpy()).all()
        else:
            scores = torch.randn(sizes, generator=torch.Generator().manual_seed(0)) * 3
            wanted = modified(SCORES[name], scores)
            assert abs(scored(value, scores.double().numpy(), sizes) - wanted.numpy()).max() < 1e-4


@pytest.mark.parametrize("name", [name for name in TRACED if not any(word in name for word in VARIANTS)])
def test_runs(name):
    value = traced(name)
    for length in LENGTHS:
        tensors = inputs((BATCH, HEADS, length, length))
        if name in MASKS:
            got, wanted = attention(*tensors, mask=value), reference(*tensors, MASKS[name])
        else:
            got, wanted = attention(*tensors, score=value), reference(*tensors, None, SCORES[name])
        error = (got - wanted).abs().max().item()
        assert error < 0.01, f"{length}: {error}"


def test_families():
    """What attention-gym writes out, families say."""
    document = attnc.document("traced_ids_q", "traced_ids_kv")
    begin = attnc.rows("traced_row_begin")
    for name, family in (
            ("causal_mask", attnc.causal()), ("generate_sliding_window", attnc.window(21)),
            ("generate_dilated_sliding_window", attnc.band(24, 24) & attnc.strided(3)),
            ("generate_prefix_lm_mask", attnc.prefix(30) | attnc.causal()),
            ("generate_doc_mask_mod causal", attnc.causal() & document),
            ("generate_packed_causal_doc_mask_mod", begin & attnc.causal()),
            ("generate_vision_cross_attention_mask_mod", attnc.columns("traced_column_begin", "traced_column_end")),
            ("generate_spatial_head_mask_mod", attnc.prefix(10) | attnc.global_rows(10) | attnc.band(39, 39)),
            ("batchify_mask_mod", attnc.chunk(24) & attnc.causal())):
        assert attnc.equiv(traced(name), family).verdict == "equal", name


if __name__ == "__main__":
    for each in (*MASKS, *SCORES):
        print(line(each))
