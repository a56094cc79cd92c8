// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of schedule attributes, independent of problem and chip.
//
#include "attn/Dialect/Tile/IR/TargetInfo.h"
#include "attn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace attn::tile;
using EmitError = function_ref<InFlightDiagnostic()>;

static bool isMultiple(int64_t value, int64_t of, int64_t least, int64_t most) {
  return value >= least && value <= most && value % of == 0;
}

static LogicalResult verifyWarps(EmitError emitError, int64_t warps, ArrayRef<int64_t> some, StringRef text) {
  if (!llvm::is_contained(some, warps))
    return emitError() << "expected " << text << " warps, got: " << warps;
  return success();
}

static LogicalResult verifyCtas(EmitError emitError, int64_t ctas, int64_t most) {
  if (ctas < 1 || ctas > most)
    return emitError() << "expected ctas_per_sm from 1 to " << most << ", got: " << ctas;
  return success();
}

static LogicalResult verifyKvTile(EmitError emitError, int64_t kvTile) {
  if (!isMultiple(kvTile, 16, 16, 256))
    return emitError() << "expected a kv_tile in multiples of 16 from 16 to 256, got: " << kvTile;
  return success();
}

static LogicalResult verifyPackHeads(EmitError emitError, int64_t packHeads, int64_t rows) {
  if (packHeads < 1 || packHeads > rows)
    return emitError() << "expected pack_heads from 1 to q_tile, got: pack_heads = " << packHeads;
  return success();
}

static LogicalResult verifyStages(EmitError emitError, int64_t stages, int64_t qStages, int64_t least) {
  if (stages < least || stages > 8 || qStages < 1 || qStages > 2)
    return emitError() << "expected stages from " << least << " to 8 and q_stages 1 or 2, got: stages = " << stages
                       << ", q_stages = " << qStages;
  return success();
}

/// Verifies the consumer warpgroups of a Hopper kernel, which has a producer warpgroup besides.
static LogicalResult verifyWarpgroups(EmitError emitError, int64_t warps, int64_t ctas) {
  if (failed(verifyWarps(emitError, warps, {4, 8, 12}, "4, 8 or 12")))
    return failure();
  if (ctas < 1 || ctas > 3 || warps * ctas > 12)
    return emitError() << "expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: " << ctas << " CTAs of "
                       << warps << " warps";
  return success();
}

static LogicalResult verifyRowsOfWarps(EmitError emitError, int64_t qTile, int64_t warps) {
  if (qTile != 16 * warps)
    return emitError() << "expected a q_tile of 16 rows for each warp, got: q_tile = " << qTile
                       << ", warps = " << warps;
  return success();
}

LogicalResult SimtRowsAttr::verify(EmitError emitError, int64_t rows, int64_t keys, int64_t lanes, int64_t warps,
                                   int64_t ctas, int64_t packHeads) {
  if (!isLaneCount(lanes)) // C1
    return emitError() << "expected 1, 2, 4, 8, 16 or 32 lanes, got: " << lanes;
  if (failed(verifyWarps(emitError, warps, {1, 2, 4, 8}, "1, 2, 4 or 8")))
    return failure();
  if (rows < 1 || rows > 16 || keys < 1 || keys > 16 || packHeads < 1 || rows % packHeads) // C2
    return emitError() << "expected rows and keys from 1 to 16, and rows a multiple of pack_heads, got: rows = " << rows
                       << ", keys = " << keys << ", pack_heads = " << packHeads;
  return verifyCtas(emitError, ctas, 16); // C3
}

LogicalResult CtaPerSequenceAttr::verify(EmitError emitError, int64_t qTile, int64_t kvTile, int64_t warps,
                                         int64_t ctas, int64_t packHeads, int64_t headLoop, int64_t columnParts) {
  if (warps < 1 || warps > 8 || qTile < 1 || qTile > 256 || !isMultiple(kvTile, 8, 8, 256)) // C1
    return emitError()
           << "expected 1 to 8 warps, a q_tile from 1 to 256 and a kv_tile in multiples of 8 from 8 to 256, "
              "got: q_tile = "
           << qTile << ", kv_tile = " << kvTile << ", warps = " << warps;
  if (failed(verifyCtas(emitError, ctas, 32)) || failed(verifyPackHeads(emitError, packHeads, qTile))) // C2
    return failure();
  if (headLoop < 1 || columnParts < 0) // C3
    return emitError() << "expected a positive head_loop, and column_parts not to be negative, got: head_loop = "
                       << headLoop << ", column_parts = " << columnParts;
  return success();
}

LogicalResult TiledAttr::verify(EmitError emitError, int64_t qTile, int64_t kvTile, int64_t warps, int64_t ctas, bool,
                                bool, int64_t packHeads) {
  if (failed(verifyWarps(emitError, warps, {1, 2, 4, 8}, "1, 2, 4 or 8"))) // C1
    return failure();
  if (!isMultiple(qTile, 16 * warps, 16, 256))
    return emitError() << "expected a q_tile in multiples of 16 * warps up to 256, got: q_tile = " << qTile
                       << ", warps = " << warps;
  if (failed(verifyKvTile(emitError, kvTile)) || failed(verifyCtas(emitError, ctas, 16))) // C2, C3
    return failure();
  return verifyPackHeads(emitError, packHeads, qTile); // C4
}

LogicalResult WarpSpecializedAttr::verify(EmitError emitError, int64_t qTile, int64_t kvTile, int64_t warps,
                                          int64_t ctas, int64_t stages, int64_t qStages, bool pingpong, bool,
                                          int64_t packHeads) {
  if (failed(verifyWarpgroups(emitError, warps, ctas)) || failed(verifyRowsOfWarps(emitError, qTile, warps)) ||
      failed(verifyKvTile(emitError, kvTile)) || failed(verifyStages(emitError, stages, qStages, 2))) // C1 to C4
    return failure();
  if (pingpong && warps == 4) // C5
    return emitError() << "expected pingpong with two or three consumer warpgroups, got: " << warps << " warps";
  return verifyPackHeads(emitError, packHeads, qTile); // C6
}

LogicalResult SinglePassAttr::verify(EmitError emitError, int64_t qTile, int64_t kvTile, int64_t kvTiles, int64_t warps,
                                     int64_t ctas, int64_t stages, int64_t qStages, bool) {
  if (failed(verifyWarpgroups(emitError, warps, ctas)) || failed(verifyRowsOfWarps(emitError, qTile, warps)) ||
      failed(verifyKvTile(emitError, kvTile)) || failed(verifyStages(emitError, stages, qStages, 1))) // C1, C3, C4
    return failure();
  if (kvTiles < 2 || kvTile * kvTiles > 256) // C2
    return emitError() << "expected 2 kv_tiles or more, of 256 keys at most, got: kv_tiles = " << kvTiles
                       << ", kv_tile = " << kvTile;
  return success();
}

LogicalResult SplitKvAttr::verify(EmitError emitError, int64_t splits, int64_t least, ScheduleInterface of) {
  if (splits < 0 || splits > 256) // C1
    return emitError() << "expected splits from 0 (chosen at launch) to 256, got: " << splits;
  if (!llvm::isa<TiledAttr, WarpSpecializedAttr>(of)) // C2
    return emitError() << "expected #tile.tiled or #tile.warp_specialized as the schedule whose keys are split, got: "
                       << of;
  if (least < 0 || least > 1 << 20 || (least && splits)) // C3
    return emitError() << "expected a least number of KV tiles from 0 to 1048576, and no splits with it, got: least = "
                       << least << ", splits = " << splits;
  return success();
}

/// Verifies the stationary tile: of keys, for dK and dV, or of queries, for dQ; the kernel determines which.
static LogicalResult verifyStationary(EmitError emitError, int64_t qTile, int64_t kvTile, int64_t warps) {
  if (!isMultiple(qTile, 16, 16, 256) || !isMultiple(kvTile, 16, 16, 256) ||
      (qTile % (16 * warps) && kvTile % (16 * warps)))
    return emitError()
           << "expected a q_tile and a kv_tile in multiples of 16 from 16 to 256, one of them in multiples of 16 "
              "* warps, got: q_tile = "
           << qTile << ", kv_tile = " << kvTile << ", warps = " << warps;
  return success();
}

LogicalResult TiledBackwardAttr::verify(EmitError emitError, int64_t qTile, int64_t kvTile, int64_t warps, int64_t ctas,
                                        bool) {
  if (failed(verifyWarps(emitError, warps, {1, 2, 4, 8}, "1, 2, 4 or 8")) ||
      failed(verifyStationary(emitError, qTile, kvTile, warps))) // C1
    return failure();
  return verifyCtas(emitError, ctas, 16); // C2
}

LogicalResult WarpSpecializedBackwardAttr::verify(EmitError emitError, int64_t qTile, int64_t kvTile, int64_t warps,
                                                  int64_t ctas, int64_t stages, int64_t qStages, bool singleLoop,
                                                  int64_t dqColumns) {
  if (failed(verifyWarpgroups(emitError, warps, ctas)) || failed(verifyStationary(emitError, qTile, kvTile, warps)) ||
      failed(verifyStages(emitError, stages, qStages, 1))) // C1, C2, C3
    return failure();
  if (dqColumns && ((dqColumns != 32 && dqColumns != 64) || warps != 8 || ctas != 1 || qTile % 64 || stages < 2 ||
                    !singleLoop)) // C4
    return emitError()
           << "expected dq_columns of 32 or 64 with single_loop, a q_tile in multiples of 64, 8 warps, 1 CTA "
              "and 2 stages or more, got: dq_columns = "
           << dqColumns << ", q_tile = " << qTile << ", warps = " << warps << ", ctas_per_sm = " << ctas
           << ", stages = " << stages << (singleLoop ? "" : ", no single_loop");
  return success();
}

LogicalResult SinglePassBackwardAttr::verify(EmitError emitError, int64_t qTile, int64_t kvTile, int64_t warps,
                                             int64_t ctas, int64_t stages, int64_t qStages) {
  if (warps != 8 || !isMultiple(qTile, 16, 80, 128) || !isMultiple(kvTile, 16, 80, 128)) // C1
    return emitError()
           << "expected 8 warps and a q_tile and a kv_tile in multiples of 16 from 80 to 128, got: q_tile = " << qTile
           << ", kv_tile = " << kvTile << ", warps = " << warps;
  if (failed(verifyWarpgroups(emitError, warps, ctas))) // C2
    return failure();
  return verifyStages(emitError, stages, qStages, 1);
}

LogicalResult StationaryQBackwardAttr::verify(EmitError emitError, int64_t qTile, int64_t kvTile, int64_t kvTiles,
                                              int64_t warps, int64_t ctas, int64_t stages, int64_t qStages) {
  if (warps == 12 ? !isMultiple(qTile, 16, 144, 192) : warps != 8 || !isMultiple(qTile, 16, 208, 256)) // C1
    return emitError()
           << "expected 12 warps with a q_tile from 144 to 192, or 8 with one from 208 to 256, in multiples of "
              "16, got: q_tile = "
           << qTile << ", warps = " << warps;
  if ((kvTile != 48 && kvTile != 64) || kvTiles < 1 || kvTile * kvTiles > 256) // C2
    return emitError() << "expected kv_tiles of 48 or 64 keys and at most 256 keys in all, got: kv_tile = " << kvTile
                       << ", kv_tiles = " << kvTiles;
  if (failed(verifyWarpgroups(emitError, warps, ctas))) // C3
    return failure();
  return verifyStages(emitError, stages, qStages, 1);
}

LogicalResult BackwardKernelsAttr::verify(EmitError emitError, DqAccumulation accumulation, ScheduleInterface,
                                          ScheduleInterface, ScheduleInterface dq, int64_t splitQ) {
  if (bool(dq) != (accumulation == DqAccumulation::separate)) // C1
    return emitError() << "expected a schedule for dq if and only if its accumulation is separate, got: "
                       << stringifyDqAccumulation(accumulation) << (dq ? " with dq" : " without");
  if (splitQ < 0 || splitQ > 1 << 20) // C2
    return emitError() << "expected split_q to be 0 (none) or the least query tiles of a split, to 1048576, got: "
                       << splitQ;
  return success();
}

BackwardKernelsAttr BackwardKernelsAttr::withSplitQ(int64_t splitQ) const {
  return get(getContext(), getAccumulation(), getDkdv(), getDv(), getDq(), splitQ);
}

static bool isPerSequence(Attribute schedule) {
  auto kernel = llvm::dyn_cast<ScheduleInterface>(schedule);
  return kernel && kernel.isPerSequence();
}

LogicalResult ByResidueAttr::verify(EmitError emitError, int64_t stride, Attribute of) {
  if (stride < 2 || stride > 8) // C1
    return emitError() << "expected a stride from 2 to 8, got: " << stride;
  auto backward = llvm::dyn_cast<BackwardKernelsAttr>(of);
  if (backward ? backward.getSplitQ() != 0 : !llvm::isa<TiledAttr, WarpSpecializedAttr>(of)) // C2
    return emitError()
           << "expected #tile.tiled, #tile.warp_specialized or #tile.backward_kernels without split_q, got: " << of;
  return success();
}

LogicalResult ByLengthAttr::verify(EmitError emitError, ScheduleInterface shortSequences, Attribute longSequences) {
  if (!shortSequences.isPerSequence() || llvm::isa<ByLengthAttr, ByResidueAttr, SplitKvAttr>(longSequences) ||
      isPerSequence(longSequences)) // C1
    return emitError() << "expected a CTA or a warp for each short sequence and tiles of a grid for long ones, got: "
                       << shortSequences << " and " << longSequences;
  return success();
}

LogicalResult AuxiliaryAttr::verify(EmitError emitError, int64_t qTile, int64_t kvTile, int64_t warps, int64_t ctas,
                                    bool) {
  if (warps < 1 || warps > 16 || qTile < 1 || kvTile < 1) // C1
    return emitError() << "expected 1 to 16 warps and a positive q_tile and kv_tile, got: q_tile = " << qTile
                       << ", kv_tile = " << kvTile << ", warps = " << warps;
  return verifyCtas(emitError, ctas, 16);
}

LogicalResult TargetAttr::verify(EmitError emitError, StringRef family, int64_t chip) {
  if (!llvm::is_contained(TargetInfo::chipsOf(family), chip)) // C1
    return emitError() << "expected target \"cpu\", \"sm_80\" or \"sm_90a\" with one of its chips, got: \"" << family
                       << "\", chip = " << chip;
  return success();
}

WarpSpecializedInterface attn::tile::warpSpecializationOf(Attribute schedule) {
  if (auto split = llvm::dyn_cast<SplitKvAttr>(schedule))
    schedule = split.getOf();
  return llvm::dyn_cast<WarpSpecializedInterface>(schedule);
}
