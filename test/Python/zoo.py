# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The masks and score modifiers of attention-gym, with parameters for 128 positions, or for 2^n times as many."""
import functools
import importlib
import math

import torch

masks, mods = (importlib.import_module(f"attn_gym.{name}") for name in ("masks", "mods"))
activation = torch.nn.functional
READ_BATCH = {"generate_vsa_mask_mod", "gate of a head", "generate_mla_rope_score_mod",
              "generate_graphormer_spatial_bias", "generate_graphormer_edge_bias"}


def of(module, name):
    """A function that attn_gym does not export."""
    return getattr(importlib.import_module(f"attn_gym.{module}"), name)


def parts(power, count):
    """2^power as a product of `count` powers of two."""
    return [2 ** ((power + i) // count) for i in range(count)]


class Makers:
    """`masks` and `scores`: functions by name that make one each; generators are the name's first word."""

    def __init__(self, batch, heads, length, device="cpu"):
        self.batch, self.heads, self.length, self.device = batch, heads, length, device
        self.times = length // 128
        power = self.times.bit_length() - 1
        if length != 128 * 2**power:
            raise ValueError(f"expected a length of 128 * 2^n, got: {length}")
        self.masks, self.scores = ({name: functools.partial(self.on_device, make) for name, make in made.items()}
                                   for made in (self.all_masks(parts(power, 2), parts(power, 3)), self.all_scores()))

    def on_device(self, make):
        with torch.device(self.device):
            return make()

    def random(self, *shape):
        generator = torch.Generator().manual_seed(math.prod(shape))
        return torch.rand(*shape, generator=generator, device="cpu").to(self.device)

    def scaled(self, values, dtype=torch.int64):
        return torch.tensor(values, dtype=dtype) * self.times

    def all_masks(self, two, three):
        n, (a, b), (d, e, f) = self.times, two, three
        canvas = 8 * a, 16 * b, 3 * a | 1, 5 * b | 1
        tile = 16 * min(n, 4)
        tiles = self.length // tile

        def offsets():
            return self.scaled([0, 20, 50, 96, 128], torch.int32)

        def is_global():
            marked = torch.zeros(self.length, dtype=torch.bool)
            marked[self.scaled([0, 40, 77])] = True
            return marked

        def ancestors():
            parents = [-1] + [node // 2 for node in range(self.length - 1)]
            return masks.build_tree_ancestor_matrix(parents, device=self.device)

        def chosen():
            return torch.argsort(self.random(self.batch, self.heads, tiles, tiles))[..., :3 * tiles // 8]
        return {
            "causal_mask": lambda: masks.causal_mask,
            "generate_sliding_window": lambda: masks.generate_sliding_window(20 * n),
            "generate_dilated_sliding_window": lambda: masks.generate_dilated_sliding_window(24 * n, 3),
            "generate_prefix_lm_mask": lambda: masks.generate_prefix_lm_mask(30 * n),
            "generate_doc_mask_mod causal": lambda: masks.generate_doc_mask_mod(masks.causal_mask, offsets()),
            "generate_doc_mask_mod prefix": lambda: masks.generate_doc_mask_mod(
                masks.generate_prefix_lm_mask(7 * n), offsets()),
            "generate_packed_causal_doc_mask_mod": lambda: masks.generate_packed_causal_doc_mask_mod(offsets()),
            "generate_global_sliding_window": lambda: masks.generate_global_sliding_window(10 * n, is_global()),
            "generate_natten": lambda: masks.generate_natten(*canvas),
            "generate_tiled_natten": lambda: masks.generate_tiled_natten(*canvas, 4 * min(a, 2), 4 * min(b, 2)),
            "generate_morton_natten": lambda: masks.generate_morton_natten(*canvas),
            "generate_vision_cross_attention_mask_mod": lambda: masks.generate_vision_cross_attention_mask_mod(
                self.scaled([[0, 30], [30, 60], [60, 90], [90, 128]]), 32 * n),
            "generate_spatial_head_mask_mod": lambda: masks.generate_spatial_head_mask_mod(
                10 * n, 4, 20 * n, 2, False, min(8 * n, 128)),
            "generate_spatial_head_mask_mod sink": lambda: masks.generate_spatial_head_mask_mod(
                10 * n, 4, 20 * n, 2, True, min(8 * n, 128)),
            "generate_temporal_head_mask_mod": lambda: masks.generate_temporal_head_mask_mod(10 * n, 4, 20 * n, 2),
            "generate_sta_mask_mod_2d": lambda: masks.generate_sta_mask_mod_2d(
                (8 * a, 12 * b), (4 * a, 6 * b), (2 * min(a, 4), 3 * min(b, 4)), 20 * n),
            "generate_sta_mask_mod_3d": lambda: masks.generate_sta_mask_mod_3d(
                (4 * d, 4 * e, 6 * f), (2 * d, 4 * e, 6 * f), (2 * min(d, 2), 2 * min(e, 2), 3 * min(f, 2)), 20 * n),
            "generate_shared_prefix_mask_mod": lambda: masks.generate_shared_prefix_mask_mod(
                offsets(), torch.tensor([0, 0, 0, 3])),
            "generate_block_diffusion_mask": lambda: masks.generate_block_diffusion_mask(48 * n, 8),
            "batchify_mask_mod": lambda: masks.batchify_mask_mod(masks.causal_mask, 24 * n),
            "generate_jetspec_training_mask_mod": lambda: masks.generate_jetspec_training_mask_mod(16 * n, 8),
            "generate_jetspec_tree_causal_mask_mod": lambda: masks.generate_jetspec_tree_causal_mask_mod(
                16 * n, ancestors()),
            "generate_vsa_mask_mod": lambda: masks.generate_vsa_mask_mod(chosen(), tile),
            "generate_vsa_padding_mask_mod": lambda: of("masks.vsa", "generate_vsa_padding_mask_mod")(
                torch.tensor([tile, 9 * tile // 16] * (tiles // 2)), tile),
        }

    def all_scores(self):
        n, heads, length = self.times, self.heads, self.length

        def slopes():
            of_head = self.random(heads) / n
            return lambda s, b, h, q, k: s - of_head[h] * (q - k).abs()

        def gate():
            of_head = self.random(self.batch, heads)
            return lambda s, b, h, q, k: s * of_head[b, h]

        def ropes():
            return self.random(self.batch, heads, length, 8), self.random(self.batch, 1, length, 8)

        def distances():
            return mods.shortest_path_distances(self.random(self.batch, length, length) < 0.02, 5)

        def edges():
            return torch.zeros(self.batch, length, length, 2, dtype=torch.int32), distances()
        return {
            "generate_tanh_softcap": lambda: mods.generate_tanh_softcap(20),
            "generate_tanh_softcap approx": lambda: mods.generate_tanh_softcap(20, True),
            "generate_alibi_bias": lambda: mods.generate_alibi_bias(heads),
            "generate_activation_score_mod relu": lambda: mods.generate_activation_score_mod(activation.relu),
            "generate_activation_score_mod gelu": lambda: mods.generate_activation_score_mod(),
            "generate_activation_score_mod sigmoid": lambda: mods.generate_activation_score_mod(torch.sigmoid),
            "generate_sandwich_bias": lambda: mods.generate_sandwich_bias(heads, length, device=self.device),
            "slope of a head": slopes,
            "distance by where": lambda: lambda s, b, h, q, k: torch.where(q - k < 32 * n, s, s - 0.05 / n * (q - k)),
            "gate of a head": gate,
            "generate_mla_rope_score_mod": lambda: mods.generate_mla_rope_score_mod(*ropes(), heads),
            "generate_graphormer_spatial_bias": lambda: mods.generate_graphormer_spatial_bias(
                self.random(heads, 7), distances()),
            "generate_graphormer_edge_bias": lambda: mods.generate_graphormer_edge_bias(
                self.random(heads, 2, 3), *edges()),
        }
