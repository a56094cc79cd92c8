// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One CTA for each row of bits, at most as many as tiles of 64 queries; with more rows (of heads), CTAs loop in
// grid-stride order.
//
#include "BlockMapKernels.h"
#include "Schedules/Common/KernelArguments.h"
#include "Schedules/Common/KernelBody.h"
#include "attn/Dialect/Metadata/IR/Metadata.h"
#include "attn/Schedules/KeyWalk.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class BlockMapKernel : KernelBody {
public:
  BlockMapKernel(KernelOp kernel) : KernelBody(kernel) {}

  void build(ProblemOp problem, const MaskOperand &lists) {
    int64_t heads = lists.heads == OperandHeads::per_head      ? problem.allHeads()
                    : lists.heads == OperandHeads::per_kv_head ? problem.allKvHeads()
                                                               : 1;
    bool ofSequences =
        llvm::is_contained(leadingAxesOf(lists, problem.getQLayout(), problem.getKLayout()), ProblemTensor::Batch);
    Index lines = ofSequences ? math.mul(arg("batch"), heads) : Index(heads);
    std::string bits = bitsOf(lists);
    Value cta = IndexOp::block(b, loc);
    metadata::FillBlockBitsOp::create(b, loc, args[bits], args[bits + "_rows"], args[bits + "_words"], args[lists.name],
                                      args[lists.lists->columns], args[lists.lists->columns + "_entries"],
                                      math.value(lines), cta, args["blocks"]);
  }
};

/// A kernel that calls a function of "attn/fixed_lists.h" with some of its arguments and `cta`.
class FixedListsKernel : KernelBody {
public:
  FixedListsKernel(KernelOp kernel) : KernelBody(kernel) {}

  void call(const std::string &function, ArrayRef<std::string> written, ArrayRef<std::string> others) {
    args["cta"] = IndexOp::block(b, loc);
    callDevice(function, "attn/fixed_lists.h", written, others, [&](StringRef name) { return args[name]; });
  }
};

} // namespace

/// Writes the kernel that computes the offsets of lists of one width.
static void writeOffsets(Computation computation, ProgramBuilder &program, StringRef target, const MaskOperand &map) {
  Operation *op = computation.getOperation();
  OpBuilder b(op);
  const int64_t warps = target == "cpu" ? 1 : 8;
  KernelGrid grid;
  grid.blocks = ceilDiv(offsetsOfMap(map, {FixedSizes::of(computation)}), 4 * 32 * warps);
  auto tiles = AuxiliaryAttr::get(b.getContext(), 16, 16, warps, /*ctas_per_sm=*/4);
  std::string name = freeSymbol(op->getParentOp(), (computation.getName() + "_offsets").str());
  FixedListsKernel(KernelArguments::ofOffsets(computation.problem, map)
                       .makeKernel(program, b, op->getLoc(), name, target, grid, tiles))
      .call(llvm::formatv("list_offsets<{0}>", 32 * warps), {map.name},
            {"cta", "offsets", map.name + "_entries", map.lists->columns + "_width"});
}

/// Writes the kernels that transpose lists of one width. Each head's lists are divided into parts: a CTA counts the
/// entries of each part by blocks, one for each head adds up these counts, and a warp writes the tiles of each part in
/// order.
static void writeTransposed(Computation computation, ProgramBuilder &program, StringRef target,
                            const MaskOperand &map) {
  ProblemOp problem = computation.problem;
  Operation *op = computation.getOperation();
  OpBuilder b(op);
  const TransposedLists names = transposedOf(map);
  const std::string &columns = map.lists->columns;
  const bool packedQ = problem.getQLayout().isPacked(), packedKv = problem.getKLayout().isPacked();
  const FixedSizes fixed = FixedSizes::of(computation);
  const int64_t heads = headsOfMap(map, fixed), most = target == "cpu" ? 1 : 16;
  using program::Effect;
  auto write = [&](StringRef suffix, std::string function, int64_t warps, const rt::Extent &ctas,
                   ArrayRef<TensorUse> uses, ArrayRef<std::string> written, ArrayRef<std::string> others) {
    KernelGrid grid;
    grid.blocks = ctas;
    auto tiles = AuxiliaryAttr::get(b.getContext(), 16, 16, warps, /*ctas_per_sm=*/warps == 16 ? 2 : 4);
    std::string name = freeSymbol(op->getParentOp(), (computation.getName() + suffix).str());
    FixedListsKernel(KernelArguments::ofTransposed(problem, map, uses)
                         .makeKernel(program, b, op->getLoc(), name, target, grid, tiles))
        .call(function, written, others);
  };
  const std::string ofLists = llvm::formatv("{0}, {1}, {2}, {3}, {4}", map.lists->q, map.lists->kv, heads,
                                            packedQ ? "true" : "false", packedKv ? "true" : "false");
  const std::string lists[] = {columns, // where nothing is packed, any pointer does in place of prefix sums
                               packedQ ? "cu_seqlens_q" : columns,
                               packedKv ? "cu_seqlens_kv" : columns,
                               "batch",
                               "lines",
                               columns + "_width",
                               "key_blocks",
                               "cta"};
  const rt::Extent parts = heads * partsOfLists;
  write("_clear", llvm::formatv("clear_counts<{0}, {1}>", 32 * most, heads), most,
        ceilDiv(parts * blocksOfMap(map, {fixed}), 32 * most), {{names.counts, Effect::write}}, {names.counts},
        {"cta", "blocks", "all_blocks"});
  write("_count", llvm::formatv("count_lists<{0}, {1}>", ofLists, 32 * most), most, parts,
        {{names.counts, Effect::update}, {columns}}, {names.counts}, lists);
  write("_sum", llvm::formatv("sum_counts<{0}>", 32 * most), most, heads,
        {{names.offsets, Effect::write}, {names.counts, Effect::update}}, {names.offsets, names.counts},
        {"all_blocks", "cta"});
  write("_transpose", llvm::formatv("transpose_lists<{0}>", ofLists), /*warps=*/1, parts,
        {{names.tiles, Effect::write}, {names.counts, Effect::update}, {columns}}, {names.tiles, names.counts}, lists);
}

SmallVector<MaskOperand> attn::mapsReadAsLists(BackwardOp backward, BackwardKernelsAttr kernels) {
  ProblemOp problem = backward.getProblemOp();
  ScheduleInterface dkdv = kernels.getDkdv(), dv = kernels.getDv(), dq = kernels.getDq();
  // Kernels without lists of tiles, and those of gradients of arrays, test single blocks.
  if (!hasTileLists(problem, dkdv) || !backward.getDifferentiatedArrays().empty() ||
      (dv && (dv.getQTile() != dkdv.getQTile() || dv.getKvTile() != dkdv.getKvTile())))
    return {};
  SmallVector<MaskOperand> maps = mapsReadAsLists(problem, dkdv);
  llvm::erase_if(maps, [](const MaskOperand &map) { return !map.lists->fixedWidth; });
  if (!kernels.accumulates()) {
    SmallVector<MaskOperand> ofQueries = mapsReadAsLists(problem, dq);
    llvm::erase_if(maps, [&](const MaskOperand &map) { return !llvm::is_contained(ofQueries, map); });
  }
  return maps;
}

SmallVector<MaskOperand> attn::mapsReadAsLists(ProblemOp problem, ScheduleInterface schedule) {
  MaskInterface mask = problem.getMask();
  if (problem.getQLayout().hasPieces()) // tiles begin anywhere in blocks
    return {};
  SmallVector<MaskOperand> all = mask.operands(), conjuncts, mapsAsLists;
  for (MaskInterface part : mask.conjuncts())
    if (isa<BlockMapMaskAttr, BlockListMaskAttr>(part))
      conjuncts.push_back(part.operands().front());
  for (const MaskOperand &map : distinctOperands(mask))
    if (map.lists && map.lists->q % schedule.getQueries() == 0 && map.lists->kv % schedule.getKvTile() == 0 &&
        llvm::count(conjuncts, map) == llvm::count(all, map))
      mapsAsLists.push_back(map);
  return mapsAsLists;
}

void attn::writeBlockMaps(Computation computation, ProgramBuilder &program, StringRef target,
                          ArrayRef<MaskOperand> mapsAsLists) {
  ProblemOp problem = computation.problem;
  Operation *op = computation.getOperation();
  OpBuilder b(op);
  auto tiles = AuxiliaryAttr::get(b.getContext(), 64, 64, /*warps=*/target == "cpu" ? 1 : 4, /*ctas_per_sm=*/12);
  KernelGrid grid;
  grid.packed = problem.getQLayout().isPacked();
  for (const MaskOperand &operand : distinctOperands(problem.getMask()))
    if (operand.lists && operand.lists->fixedWidth)
      writeOffsets(computation, program, target, operand);
  if (computation.backward)
    for (const MaskOperand &map : mapsAsLists)
      writeTransposed(computation, program, target, map);
  for (const MaskOperand &operand : distinctOperands(problem.getMask()))
    if (operand.lists && !llvm::is_contained(mapsAsLists, operand)) {
      std::string name = freeSymbol(op->getParentOp(), (computation.getName() + "_blocks").str());
      BlockMapKernel(
          KernelArguments::ofBlockMap(problem, operand).makeKernel(program, b, op->getLoc(), name, target, grid, tiles))
          .build(problem, operand);
    }
}
