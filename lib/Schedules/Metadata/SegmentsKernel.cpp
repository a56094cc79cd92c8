// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn.segments -> tile.kernel: count, bound, select, check, write. The rule of which tokens see each other enters as
// arithmetic on counts.
//
#include "SegmentsKernel.h"
#include "Schedules/Common/KernelArguments.h"
#include "Schedules/Common/KernelBody.h"
#include "attn/Dialect/Metadata/IR/Metadata.h"

using namespace mlir;
using namespace attn;
using namespace attn::metadata;
using namespace attn::tile;

namespace {

class SegmentsKernel : KernelBody {
public:
  SegmentsKernel(SegmentsOp op, KernelOp kernel) : KernelBody(kernel), op(op), rule(op.getRule()) {
    auto type = SegmentTableType::get(b.getContext(), op.getSegments(), *kernel.getCluster());
    table = AllocOp::create(b, loc, type, "table");
  }

  void build() {
    row = BatchRowIndexOp::create(b, loc);
    q = tokens("q"), kv = tokens("kv");
    CountSegmentsOp::create(b, loc, table, q, kv);
    auto bound = BoundSegmentsOp::create(b, loc, table, q, rule.family == SegmentRule::BottomRight);
    write(bound.getBody(), 6, [&](IndexMath &math, ArrayRef<Index> of) { return bounds(math, of); });
    SelectSegmentsOp::create(b, loc, table, q, kv, args.lookup("segments_q"), args.lookup("segments_kv"));
    if (rule.hasPositions()) {
      auto check = CheckSegmentsOp::create(b, loc, table, q, kv);
      write(check.getBody(), 3, [&](IndexMath &math, ArrayRef<Index> of) { return claims(math, of); });
    }
    WriteSegmentsOp::create(b, loc, table, args["seqlens_q"], args["seqlens_kv"], args["offsets_q"], args["offsets_kv"],
                            args["status"]);
    WriteSequencesOp::create(b, loc, table, q, kv, args["queue"], args["id_rows"], args["cu_seqlens_q"],
                             args["padded_offsets_q"], args["cu_seqlens_kv"], args["padded_offsets_kv"]);
    if (op.getTiles()) {
      auto list = ListQueryTilesOp::create(b, loc, table, q, kv, args["id_rows"], args["cu_seqlens_q"],
                                           args["padded_offsets_q"], args["cu_seqlens_kv"], *op.getTiles(),
                                           args["tiles_q"], args["tile_count"]);
      write(list.getBody(), 2, [&](IndexMath &math, ArrayRef<Index> of) { return cost(math, of); });
    }
  }

private:
  Value tokens(StringRef side) {
    auto arg = [&](StringRef name) { return args.lookup((name + "_" + side).str()); };
    Location named = NameLoc::get(b.getStringAttr(side), loc);
    return TokensOp::create(b, named, arg("ids"), row, arg("tokens"), arg("positions"), arg("position_rows"));
  }

  /// Fills a region on `count` integers.
  void write(Region &region, unsigned count,
             llvm::function_ref<SmallVector<Index>(IndexMath &, ArrayRef<Index>)> what) {
    OpBuilder::InsertionGuard guard(b);
    Block &block = region.emplaceBlock();
    block.addArguments(SmallVector<Type>(count, b.getI32Type()), SmallVector<Location>(count, loc));
    b.setInsertionPointToStart(&block);
    IndexMath math(b, loc);
    SmallVector<Index> arguments(block.getArguments().begin(), block.getArguments().end());
    SmallVector<Value> values;
    for (Index value : what(math, arguments))
      values.push_back(math.value(value));
    YieldOp::create(b, loc, values);
  }

  /// From (count, lowest position, highest position) of q and of kv: bounds on the positions of tokens that see, or are
  /// seen by, any other, and the shift of the diagonal.
  SmallVector<Index> bounds(IndexMath &math, ArrayRef<Index> of) {
    Index highQ = of[2], lowKv = of[4], shift = 0;
    switch (rule.family) {
    case SegmentRule::Padding:
      return {INT32_MIN, INT32_MAX, 0};
    case SegmentRule::Causal:
      break;
    case SegmentRule::BottomRight:
      shift = math.sub(of[3], of[0]);
      break;
    }
    return {math.sub(lowKv, shift), math.add(highQ, shift), shift};
  }

  /// From (queries, keys, shift) of a segment: the offsets of its diagonals by index and by position.
  SmallVector<Index> claims(IndexMath &math, ArrayRef<Index> of) {
    Index diagonal = rule.family == SegmentRule::BottomRight ? math.sub(of[1], of[0]) : Index(0), shift = of[2];
    SmallVector<Index> pairs;
    auto claim = [&](int64_t by) { pairs.append({math.add(diagonal, by), math.add(shift, by)}); };
    if (rule.family != SegmentRule::Padding || rule.right)
      claim(rule.right.value_or(0));
    if (rule.left) // the last key before the window
      claim(-*rule.left - 1);
    return pairs;
  }

  /// From (queries, keys) of a sequence: the number of keys that any of its queries sees.
  SmallVector<Index> cost(IndexMath &math, ArrayRef<Index> of) {
    MaskScope scope;
    scope.lenQ = of[0], scope.lenK = of[1];
    Index keys = 0;
    for (const Interval &seen : op.getMask().keyRanges(math, scope, {0, of[0]}).some)
      keys = math.add(keys, math.max(math.sub(seen.hi, seen.lo), 0));
    return {keys};
  }

  SegmentsOp op;
  SegmentRule rule;
  Value table, row, q, kv;
};

/// A CTA has some tokens of all rows of ids, for one head.
class SinksKernel : ProblemBody {
public:
  SinksKernel(ProblemOp problem, KernelOp kernel)
      : ProblemBody(problem, kernel), tokens(kernel.getSchedule().getQTile()) {}

  void build(int64_t segments) {
    Index cta = Value(IndexOp::block(b, loc));
    Index tiles = math.named(tilesOf(/*keys=*/false, tokens), "tiles");
    Index row = math.named(math.mul(rem(cta, tiles), tokens), "row0"), head = math.named(div(cta, tiles), "h");
    Index rows = math.named(math.min(math.sub(extentOf(/*keys=*/false), row), tokens), "rows");
    Value sink;
    if (std::optional<double> number = problem.getSinkNumber())
      sink = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(*number)));
    else
      sink = LoadOp::create(b, loc, b.getF32Type(), args[problem.getSinkArray()->name], math.value(head),
                            /*uniform=*/false);
    StoreSinkLseOp::create(b, loc, lsePointer(row, 0, head), math.value(row), math.value(rows), args["ids_q"],
                           args["tokens_q"], math.value(Index(segments)), args["cu_seqlens_q"],
                           args["padded_offsets_q"], args["batch"], sink, args.lookup("positions_q"),
                           args.lookup("position_rows_q"));
  }

private:
  int64_t tokens;
};

} // namespace

void attn::writeSinks(ProblemOp problem, ProgramBuilder &program, SegmentsOp segments, StringRef target) {
  OpBuilder b(problem);
  auto schedule = AuxiliaryAttr::get(b.getContext(), /*q_tile=*/256, /*kv_tile=*/16, /*warps=*/8, /*ctas_per_sm=*/4);
  std::string name = freeSymbol(problem->getParentOp(), problem.getSymName() + "_sinks");
  KernelGrid grid = {/*packed=*/true, int64_t(problem.getHeads())};
  KernelOp kernel = KernelArguments::ofSinks(problem, segments)
                        .makeKernel(program, b, problem.getLoc(), name, target, grid, schedule);
  SinksKernel(problem, kernel).build(int64_t(segments.getSegments()));
}

void attn::writeSegments(SegmentsOp op, ProgramBuilder &program, const TargetInfo &target, ProblemOp problem) {
  OpBuilder b(op);
  // Tile sizes are those of the tiles that the kernel lists.
  auto schedule = AuxiliaryAttr::get(b.getContext(), op.getTiles().value_or(128), 128, /*warps=*/16, /*ctas_per_sm=*/1);
  KernelGrid grid;
  grid.cluster = b.getI64IntegerAttr(target.cluster);
  grid.ofIds = true;
  KernelOp kernel = KernelArguments::ofSegments(op, problem)
                        .makeKernel(program, b, op.getLoc(), op.getSymName(), target.name, grid, schedule);
  SegmentsKernel(op, kernel).build();
}
