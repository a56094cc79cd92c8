// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TileWalk.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"

namespace attn::tile {
#define GEN_PASS_DEF_PERSIST
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
struct PersistPass : attn::tile::impl::PersistBase<PersistPass> {
  using Base::Base;

  void runOnOperation() final {
    KernelOp kernel = getOperation();
    if (!kernel.isPersistent())
      return;
    Value workTiles = kernel.getArg("blocks"), queue = kernel.getArg("queue");
    if (!workTiles || !queue) {
      kernel.emitError("expected arguments `blocks` and `queue` of a kernel that is to be persistent");
      return signalPassFailure();
    }
    SmallVector<Operation *> program;
    for (Operation &op : kernel.getBody().front())
      if (!isa<AllocOp>(op))
        program.push_back(&op);
    OpBuilder b = OpBuilder::atBlockEnd(&kernel.getBody().front());
    for (auto index : kernel.getBody().getOps<IndexOp>())
      if (Value below = index.getBelow()) {
        if (Operation *definition = below.getDefiningOp())
          for (Operation *op : sliceOf(definition))
            llvm::erase(program, op);
        Location named = NameLoc::get(b.getStringAttr("work_items"), kernel.getLoc());
        workTiles = arith::MinSIOp::create(b, named, workTiles, below);
      }
    auto persist = PersistentLoopOp::create(b, kernel.getLoc(), workTiles, queue, Value());
    Block &body = persist.getBody().emplaceBlock();
    Value workTile = body.addArgument(b.getI32Type(), kernel.getLoc());
    for (Operation *op : program)
      op->moveBefore(&body, body.end());
    persist.walk([&](IndexOp index) {
      if (!index.isBlock())
        return;
      index.replaceAllUsesWith(workTile);
      index.erase();
    });
  }
};
} // namespace
