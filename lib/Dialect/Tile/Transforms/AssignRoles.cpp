// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program is written twice. The producer's copy keeps the scalars, the loops
// and the copies; the consumer's keeps everything else. Where one copied into a
// place and waited, the producer now fills a ring and the consumer takes from it.
//
#include "TileWalk.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

namespace attn::tile {
#define GEN_PASS_DEF_ASSIGNROLES
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// A ring for every place that is copied into.
static DenseMap<Value, Value> makeRings(PersistOp persist, ConfigAttr config) {
  DenseMap<Value, Value> rings;
  OpBuilder b(persist);
  persist.walk([&](CopyBoxOp copy) {
    bool often = bool(copy->getParentOfType<KvLoopOp>());
    auto type =
        RingType::get(b.getContext(), often ? config.getStages() : config.getQStages(), copy.getDst().getType());
    auto place = copy.getDst().getDefiningOp<PlaceOp>();
    rings[copy.getDst()] = PlaceOp::create(b, place.getLoc(), type, place.getName());
  });
  return rings;
}

//===----------------------------------------------------------------------===//
// Producer
//===----------------------------------------------------------------------===//

/// Which tests a tile needs is nobody's business here: one segment a run.
static void mergeSegments(KvLoopOp loop) {
  SmallVector<Value> bounds;
  SmallVector<Attribute> runs;
  Builder b(loop.getContext());
  for (const KvLoopOp::Run &run : loop.getRunList()) {
    bounds.append({run.bounds.front(), run.bounds.back()});
    runs.push_back(b.getArrayAttr(b.getDenseI64ArrayAttr({})));
  }
  loop.getBoundsMutable().assign(bounds);
  loop.setRunsAttr(b.getArrayAttr(runs));
}

static void produce(PersistOp persist, const DenseMap<Value, Value> &rings) {
  SmallVector<Operation *> gone;
  persist.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<KeepOp, RepairOp>(op)) {
      gone.push_back(op);
      return WalkResult::skip();
    }
    if (isa<CopyBoxOp, WaitOp, ClearOp, HoldOp, MmaQkOp, MmaPvOp, SoftmaxStepOp, NormalizeOp, StoreOp, StoreLseOp,
            StorePaddingOp, ZeroRowsOp>(op))
      gone.push_back(op);
    if (auto copy = dyn_cast<CopyBoxOp>(op)) {
      OpBuilder b(copy);
      FillOp::create(b, copy.getLoc(), rings.lookup(copy.getDst()), copy.getMap(), copy.getRow(), copy.getHead(),
                     copy.getBatch());
    }
    return WalkResult::advance();
  });
  for (Operation *op : llvm::reverse(gone))
    op->erase();
  persist.walk([](KvLoopOp loop) { mergeSegments(loop); });
}

//===----------------------------------------------------------------------===//
// Consumer
//===----------------------------------------------------------------------===//

/// When is `user` done with the tiles it reads?
static Operation *endOf(Operation *user) {
  if (isa<MmaQkOp, MmaPvOp>(user))
    if (WaitOp wait = soleWait(user->getResult(0)))
      return wait;
  return user;
}

/// Takes the place's tile where it was waited for, and releases it behind its last reader.
static void consume(CopyBoxOp copy, Value ring) {
  WaitOp wait = soleWait(copy.getToken());
  OpBuilder b(wait);
  auto take = TakeOp::create(b, wait.getLoc(), ring);
  Operation *last = take;
  auto persist = copy->getParentOfType<PersistOp>();
  for (OpOperand &use : llvm::make_early_inc_range(copy.getDst().getUses())) {
    Operation *user = use.getOwner();
    if (user == copy || !persist->isProperAncestor(user))
      continue;
    use.set(take.getTile());
    Operation *end = take->getBlock()->findAncestorOpInBlock(*endOf(user));
    if (last->isBeforeInBlock(end))
      last = end;
  }
  b.setInsertionPointAfter(last);
  ReleaseOp::create(b, copy.getLoc(), ring);
  wait.erase();
  copy.erase();
}

//===----------------------------------------------------------------------===//
// What consumers need not find out again
//===----------------------------------------------------------------------===//

/// Scalars that come from memory, such as a sequence's length: the producer is
/// ahead and sends them, so that no consumer waits for memory before it can begin.
static void sendScalars(PersistOp producer, PersistOp consumer, const IRMapping &inProducer) {
  Block &body = consumer.getBody().front();
  SetVector<Value> loaded;
  for (Operation &op : body) {
    bool scalar = llvm::all_of(op.getResultTypes(), [](Type type) { return type.isInteger(32); });
    bool source = isa<FindSequenceOp>(op) || (isa<LoadOp>(op) && cast<LoadOp>(op).getUniform());
    bool follows = scalar && op.getNumRegions() == 0 && isMemoryEffectFree(&op) && !isa<LoadOp>(op) &&
                   llvm::any_of(op.getOperands(), [&](Value v) { return loaded.contains(v); });
    if (source || follows)
      loaded.insert(op.result_begin(), op.result_end());
  }
  SmallVector<Value> sent;
  for (Value value : loaded)
    if (llvm::any_of(value.getUsers(), [&](Operation *user) {
          return user->getNumResults() == 0 || !loaded.contains(user->getResult(0));
        }))
      sent.push_back(value);

  OpBuilder b(producer.getContext());
  Location loc = producer.getLoc();
  SmallVector<Value> words = {producer.getBody().getArgument(0)};
  b.setInsertionPointToStart(&producer.getBody().front());
  for (Value value : sent) {
    Value here = inProducer.lookup(value);
    words.push_back(here);
    b.setInsertionPointAfterValue(here);
    Location named = value.getLoc();
    if (auto find = value.getDefiningOp<FindSequenceOp>())
      named = NameLoc::get(b.getStringAttr(find.nameOf(cast<OpResult>(value))), loc);
    value.replaceAllUsesWith(body.addArgument(b.getI32Type(), named));
  }
  auto feedType = FeedType::get(b.getContext(), words.size());
  OpBuilder top(producer->getParentOfType<RolesOp>());
  Value feed = PlaceOp::create(top, loc, feedType, "feed");
  SendOp::create(b, loc, feed, words);
  producer.getFeedMutable().assign(feed);
  consumer.getFeedMutable().assign(feed);
  consumer.getQueueMutable().clear();
}

/// Registers of a thread of either role: what a multiprocessor has, shared out in
/// eights. The producer needs some once it deals out tiles.
static std::pair<int64_t, int64_t> registersOf(ConfigAttr config) {
  if (config.getWarps() == 12)
    return {32, 160};
  return {40, 232};
}

namespace {
struct AssignRolesPass : attn::tile::impl::AssignRolesBase<AssignRolesPass> {
  using Base::Base;

  void runOnOperation() final {
    KernelOp kernel = getOperation();
    auto found = kernel.getBody().getOps<PersistOp>();
    if (!llvm::hasSingleElement(found)) {
      kernel.emitError("expected one `tile.persist` around the kernel's program");
      return signalPassFailure();
    }
    PersistOp consumer = *found.begin();
    WalkResult copies = consumer.walk([](CopyBoxOp copy) {
      if (soleWait(copy.getToken()))
        return WalkResult::advance();
      copy.emitOpError("expected one wait for it");
      return WalkResult::interrupt();
    });
    if (copies.wasInterrupted())
      return signalPassFailure();

    DenseMap<Value, Value> rings = makeRings(consumer, kernel.getConfig());
    OpBuilder b(consumer);
    auto [few, many] = registersOf(kernel.getConfig());
    auto roles = RolesOp::create(b, consumer.getLoc(), few, many);
    Block &producers = roles.getProducer().emplaceBlock(), &consumers = roles.getConsumer().emplaceBlock();
    IRMapping inProducer;
    b.setInsertionPointToEnd(&producers);
    auto producer = cast<PersistOp>(b.clone(*consumer, inProducer));
    consumer->moveBefore(&consumers, consumers.end());

    sendScalars(producer, consumer, inProducer);
    produce(producer, rings);
    SmallVector<CopyBoxOp> taken;
    consumer.walk([&](CopyBoxOp copy) { taken.push_back(copy); });
    for (CopyBoxOp copy : taken)
      consume(copy, rings.lookup(copy.getDst()));

    // Registers are the consumer's; tiles lie in rings now.
    for (auto place : llvm::make_early_inc_range(kernel.getBody().getOps<PlaceOp>())) {
      if (place.use_empty())
        place.erase();
      else if (isa<FragType, HeldType, RowsType>(place.getType()))
        place->moveBefore(consumer);
    }
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, roles->getRegions());
  }
};
} // namespace
