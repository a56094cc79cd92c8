// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn.select: one kernel, which ranks blocks as compressed keys are streamed.
//
#include "CallKernel.h"
#include "Lowerings.h"
#include "llvm/ADT/bit.h"
#include <numeric>

using namespace mlir;
using namespace attn;

namespace {
/// How many tiles a CTA has, and what it keeps of each in shared memory (Selector in sparse/select.cuh).
struct Shape {
  int64_t warps = 1, tiles = 1; ///< tiles of a warp
  int64_t capacity = 64;        ///< candidates of a tile
  int64_t part = 1;             ///< keys of a block whose largest score is kept as one: windows of the tile's ring
  int64_t ring = 32;            ///< windows of a tile, a power of two
  int64_t sharedBytes = 0;
};
} // namespace

/// nullopt: there is no room for the windows of a block.
static std::optional<Shape> shapeOnGpu(SelectOp op) {
  const int64_t kept = int64_t(op.getCount()) - int64_t(op.getFirst()) - int64_t(op.getLocal());
  const int64_t group = int64_t(op.getHeads()) / op.getListHeads(), depth = llvm::divideCeil(int64_t(op.getDim()), 16);
  Shape shape;
  // Largest scores are found in registers, of as many keys of a chunk as a block has in full: 8 or more, or each alone.
  if (op.getScorer() == BlockScorer::max)
    shape.part = op.getBlock() % 8 ? 1 : std::gcd(int64_t(op.getBlock()), int64_t(32));
  const int64_t inBlock = int64_t(op.getBlock()) / op.getWindowStride() / shape.part, inChunk = 32 / shape.part,
                inWindow = op.getWindowLength() / op.getWindowStride();
  // A full buffer is cut; the larger it is, the fewer cuts there are.
  shape.capacity = kept <= 32 ? 64 : llvm::alignTo(kept + std::max<int64_t>(64, kept / 4), 32);
  // Those of a chunk of 32 keys, and those before it that blocks have which end in the chunk.
  shape.ring = llvm::PowerOf2Ceil(inChunk + (inChunk % inBlock ? inBlock - 1 : 0) + inWindow - 1);
  // All chips have 99 KB for a CTA, Hopper and A100 room for two CTAs of so many bytes.
  const int64_t stages = (depth <= 8 ? 4 : 3) * 32 * (depth * 16 + 8) * 2, room = 80 * 1024 - stages,
                most = 97 * 1024 - stages;
  const int64_t ofTile = 32 + 8 * shape.capacity + 4 * (shape.ring + 8);
  if (ofTile > most)
    return std::nullopt;
  const bool wide = depth <= 8 && group > 32;
  const int64_t slots = wide ? 16 : 8; // of a lane, for heads
  const int64_t fitting = group <= slots ? 4 * (slots / group) : group <= 2 * slots ? 2 : 1;
  // As many warps as queries in registers allow, but each with 16 columns where shared memory bounds its tiles: all of
  // them read each key.
  auto tiles = [&](int64_t warps) { return std::min(room / (warps * ofTile), fitting); };
  for (shape.warps = wide || depth > 8 ? 4 : 8; shape.warps > 1; shape.warps /= 2)
    if (tiles(shape.warps) == fitting || tiles(shape.warps) * group >= 16)
      break;
  while (shape.warps < 4 && tiles(2 * shape.warps) >= 1 && tiles(shape.warps) * group < 16)
    shape.warps *= 2;
  shape.tiles = std::max<int64_t>(tiles(shape.warps), 1);
  if (shape.tiles > 4) // as many for each lane of a quad
    shape.tiles = shape.tiles / 4 * 4;
  shape.sharedBytes = stages + shape.warps * shape.tiles * ofTile;
  return shape;
}

LogicalResult attn::writeSelect(SelectOp op, ProgramBuilder &program, const TargetInfo &target) {
  std::optional<Shape> shape = target.isHost() ? Shape() : shapeOnGpu(op);
  if (!shape)
    return op->emitOpError("has kernels for target `")
           << target.name << "` for blocks and windows of up to 8192 strides, got: length(" << op.getWindowLength()
           << ") stride(" << op.getWindowStride() << ") block(" << int64_t(op.getBlock()) << ")";
  const bool packed = op.getLayout().isPacked(), ofKeys = op.getScorer() == BlockScorer::max,
             isProbability = op.getScorer() == BlockScorer::prob;
  const int64_t rows = op.getRows(), lists = op.getListHeads(), tiles = shape->warps * shape->tiles;
  using rt::Extent;
  const Extent batch = Extent::symbol("batch");
  CallKernel kernel(op, program, target);
  kernel.warps = shape->warps, kernel.ctasPerSm = 2, kernel.sharedBytes = shape->sharedBytes;
  kernel.setBlocks(packed ? ceilDiv(floorDiv(Extent::symbol("total_q"), rows) + batch, tiles) * lists
                          : ceilDiv(ceilDiv(Extent::symbol("seqlen_q"), rows), tiles) * batch * lists);
  // p is a power of 2. Other scores are compared as they are.
  const float scale = isProbability ? op.scaleOrDefault() * 1.4426950408889634 : 1;
  const std::string function =
      functionOf(packed ? "select_blocks" : "select_dense_blocks", op.getHeads(), lists, op.getKvHeads(), op.getDim(),
                 isProbability, ofKeys, op.getWindowLength(), op.getWindowStride(), op.getBlock(), op.getCount(),
                 op.getFirst(), op.getLocal(), rows, llvm::bit_cast<uint32_t>(scale), shape->warps, shape->tiles,
                 shape->capacity, shape->part, shape->ring);
  const std::string keys = ofKeys ? "k" : "compressed_k";
  SmallVector<std::string> others = {"q", keys};
  if (packed)
    others.append({"cu_seqlens", ofKeys ? "cu_seqlens" : "cu_seqlens_compressed", "blocks.head", "q.row", "q.head",
                   keys + ".row", keys + ".head", "batch", "total_q", "block"});
  else
    others.append({"blocks.batch", "blocks.head", "q.batch", "q.row", "q.head", keys + ".batch", keys + ".row",
                   keys + ".head", "batch", "seqlen_q", keys + ".rows", "block"});
  if (isProbability && !packed)
    others.append({"lse", "lse.batch", "lse.head"});
  else if (isProbability)
    others.append({"lse", "lse.head"});
  kernel.call(function, {"blocks"}, others);
  kernel.build("attn/select.h");
  return success();
}
