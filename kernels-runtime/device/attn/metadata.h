// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of metadata kernels: work-tile lists of a batch, and lengths and offsets of segments from the ids
// and positions of tokens. A cluster of CTAs processes one batch row, and each CTA a part of its tokens. Their segment
// tables are reduced into shared memory of the first CTA, which does the rest; all CTAs write the maps of ids.
//
// An even segment is contiguous on both sides, with positions that rise by the same step. If all segments are even, one
// pass over the tokens suffices: which tokens have visible pairs, and whether the mask equals that of lengths and
// offsets, follows arithmetically from a segment's first token, count, lowest position and step. Rows with other
// segments take a second pass by the first CTA; they are rare, and most of them are errors in the input.
//
// All arithmetic is on integers, and either commutative (counts, minima, maxima) or in token order, so results do not
// depend on the schedule of CTAs and warps.
#pragma once
#include "attn/metadata/check_segments.cuh"
#include "attn/metadata/count_segments.cuh"
#include "attn/metadata/list_work_tiles.cuh"
#include "attn/metadata/select_segments.cuh"
#include "attn/metadata/split_walks.cuh"
#include "attn/metadata/write_segments.cuh"
#include "attn/metadata/write_sequences.cuh"
