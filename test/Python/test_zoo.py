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
from test_trace import attention, dense, inputs, modified, reference, scored, shown

torch = pytest.importorskip("torch")
gym = pytest.importorskip("attn_gym")
importlib.import_module("torch.nn.attention.flex_attention")
masks, mods = (importlib.import_module(f"attn_gym.{name}") for name in ("masks", "mods"))
EXPECTED = pathlib.Path(__file__).with_name("zoo.expected")
BATCH, HEADS, LENGTHS = 2, 4, (96, 128)
LONGEST = max(LENGTHS)


def of(module, name):
    """A function that attn_gym does not export."""
    return getattr(importlib.import_module(f"attn_gym.{module}"), name)


def zoo():
    """(masks, score modifiers) by name; the functions that make them by the name's first word."""
    generator = torch.Generator().manual_seed(0)
    random = lambda *shape: torch.rand(*shape, generator=generator)  # noqa: E731
    offsets = torch.tensor([0, 20, 50, 96, LONGEST], dtype=torch.int32)
    is_global = torch.zeros(LONGEST, dtype=torch.bool)
    is_global[[0, 40, 77]] = True
    intervals = torch.tensor([[0, 30], [30, 60], [60, 90], [90, LONGEST]])
    ancestors = masks.build_tree_ancestor_matrix([-1] + [node // 2 for node in range(LONGEST - 1)], device="cpu")
    tiles = torch.argsort(random(BATCH, HEADS, 8, 8))[..., :3]
    sizes = torch.tensor([16, 9] * 4)
    made = {
        "causal_mask": masks.causal_mask,
        "generate_sliding_window": masks.generate_sliding_window(20),
        "generate_dilated_sliding_window": masks.generate_dilated_sliding_window(24, 3),
        "generate_prefix_lm_mask": masks.generate_prefix_lm_mask(30),
        "generate_doc_mask_mod causal": masks.generate_doc_mask_mod(masks.causal_mask, offsets),
        "generate_doc_mask_mod prefix": masks.generate_doc_mask_mod(masks.generate_prefix_lm_mask(7), offsets),
        "generate_packed_causal_doc_mask_mod": masks.generate_packed_causal_doc_mask_mod(offsets),
        "generate_global_sliding_window": masks.generate_global_sliding_window(10, is_global),
        "generate_natten": masks.generate_natten(8, 16, 3, 5),
        "generate_tiled_natten": masks.generate_tiled_natten(8, 16, 3, 5, 4, 4),
        "generate_morton_natten": masks.generate_morton_natten(8, 16, 3, 5),
        "generate_vision_cross_attention_mask_mod": masks.generate_vision_cross_attention_mask_mod(intervals, 32),
        "generate_spatial_head_mask_mod": masks.generate_spatial_head_mask_mod(10, 4, 20, 2, False, 8),
        "generate_spatial_head_mask_mod sink": masks.generate_spatial_head_mask_mod(10, 4, 20, 2, True, 8),
        "generate_temporal_head_mask_mod": masks.generate_temporal_head_mask_mod(10, 4, 20, 2),
        "generate_sta_mask_mod_2d": masks.generate_sta_mask_mod_2d((8, 12), (4, 6), (2, 3), 20),
        "generate_sta_mask_mod_3d": masks.generate_sta_mask_mod_3d((4, 4, 6), (2, 4, 6), (2, 2, 3), 20),
        "generate_shared_prefix_mask_mod": masks.generate_shared_prefix_mask_mod(offsets, torch.tensor([0, 0, 0, 3])),
        "generate_block_diffusion_mask": masks.generate_block_diffusion_mask(48, 8),
        "batchify_mask_mod": masks.batchify_mask_mod(masks.causal_mask, 24),
        "generate_jetspec_training_mask_mod": masks.generate_jetspec_training_mask_mod(16, 8),
        "generate_jetspec_tree_causal_mask_mod": masks.generate_jetspec_tree_causal_mask_mod(16, ancestors),
        "generate_vsa_mask_mod": masks.generate_vsa_mask_mod(tiles, 16),
        "generate_vsa_padding_mask_mod": of("masks.vsa", "generate_vsa_padding_mask_mod")(sizes, 16),
    }
    slopes, gate = random(HEADS), random(BATCH, HEADS)
    rope_q, rope_k = random(BATCH, HEADS, LONGEST, 8), random(BATCH, 1, LONGEST, 8)
    adjacency = random(BATCH, LONGEST, LONGEST) < 0.02
    distances = mods.shortest_path_distances(adjacency, 5)
    paths = torch.zeros(BATCH, LONGEST, LONGEST, 2, dtype=torch.int32), distances
    activation = torch.nn.functional
    scores = {
        "generate_tanh_softcap": mods.generate_tanh_softcap(20),
        "generate_tanh_softcap approx": mods.generate_tanh_softcap(20, True),
        "generate_alibi_bias": mods.generate_alibi_bias(HEADS),
        "generate_activation_score_mod relu": mods.generate_activation_score_mod(activation.relu),
        "generate_activation_score_mod gelu": mods.generate_activation_score_mod(),
        "generate_activation_score_mod sigmoid": mods.generate_activation_score_mod(torch.sigmoid),
        "generate_sandwich_bias": mods.generate_sandwich_bias(HEADS, LONGEST),
        "slope of a head": lambda s, b, h, q, k: s - slopes[h] * (q - k).abs(),
        "distance by where": lambda s, b, h, q, k: torch.where(q - k < 32, s, s - 0.05 * (q - k)),
        "gate of a head": lambda s, b, h, q, k: s * gate[b, h],
        "generate_mla_rope_score_mod": mods.generate_mla_rope_score_mod(rope_q, rope_k, HEADS),
        "generate_graphormer_spatial_bias": mods.generate_graphormer_spatial_bias(random(HEADS, 7), distances),
        "generate_graphormer_edge_bias": mods.generate_graphormer_edge_bias(random(HEADS, 2, 3), *paths),
    }
    return made, scores


MASKS, SCORES = zoo()


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
            assert (shown(value, sizes) == dense(torch, MASKS[name], sizes).numpy()).all()
        else:
            scores = torch.randn(sizes, generator=torch.Generator().manual_seed(0)) * 3
            wanted = modified(torch, SCORES[name], scores)
            assert abs(scored(value, scores.double().numpy(), sizes) - wanted.numpy()).max() < 1e-4


@pytest.mark.parametrize("name", [name for name in TRACED if not any(word in name for word in VARIANTS)])
def test_runs(name):
    value = traced(name)
    for length in LENGTHS:
        tensors = inputs(torch, (BATCH, HEADS, length, length))
        if name in MASKS:
            got, wanted = attention(torch, *tensors, mask=value), reference(torch, *tensors, MASKS[name])
        else:
            got, wanted = attention(torch, *tensors, score=value), reference(torch, *tensors, None, SCORES[name])
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
