// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One CTA for each row of bits, at most as many as tiles of 64 queries; with more rows (of heads), CTAs loop in
// grid-stride order.
//
#include "BlockMapKernels.h"
#include "Schedules/Common/KernelArguments.h"
#include "Schedules/Common/KernelBody.h"
#include "attn/Dialect/Metadata/IR/Metadata.h"

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

} // namespace

namespace {
class OffsetsKernel : KernelBody {
public:
  OffsetsKernel(KernelOp kernel) : KernelBody(kernel) {}

  void build(const MaskOperand &map, int64_t threads) {
    Value cta = IndexOp::block(b, loc);
    tile::CallOp::create(
        b, loc, "list_offsets<" + std::to_string(threads) + ">", "attn/list_offsets.h", ValueRange(args[map.name]),
        ValueRange{cta, args["offsets"], args[map.name + "_entries"], args[map.lists->columns + "_width"]});
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
  OffsetsKernel(KernelArguments::ofOffsets(computation.problem, map)
                    .makeKernel(program, b, op->getLoc(), name, target, grid, tiles))
      .build(map, 32 * warps);
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
  for (const MaskOperand &operand : distinctOperands(problem.getMask()))
    if (operand.lists && !llvm::is_contained(mapsAsLists, operand)) {
      std::string name = freeSymbol(op->getParentOp(), (computation.getName() + "_blocks").str());
      BlockMapKernel(
          KernelArguments::ofBlockMap(problem, operand).makeKernel(program, b, op->getLoc(), name, target, grid, tiles))
          .build(problem, operand);
    }
}
