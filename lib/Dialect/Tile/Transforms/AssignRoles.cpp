// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass writes the program once for each role. The producer keeps scalars, loops and copies; consumers keep the
// rest. A copy into a tile and the wait for it become a load into a ring by the producer and a wait for that ring by
// consumers. Where dQ is accumulated in global memory through a staging tile, consumers write that tile, and the dQ
// store warps keep scalars, loops and the addition. With a dQ MMA warpgroup, dS^T K belongs to that warpgroup, and
// consumers only store dS into a ring.
//
#include "PublishScalars.h"
#include "Releases.h"
#include "TileWalk.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

namespace attn::tile {
#define GEN_PASS_DEF_ASSIGNROLES
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// The destination of a copy that a ring can replace; null for any other op.
static Value destinationOf(Operation *op) {
  if (auto copy = dyn_cast<CopyTmaOp>(op))
    return copy.getDst();
  if (auto copy = dyn_cast<CopyRowStatisticsOp>(op))
    return copy.getDst();
  return {};
}

/// Does `user` read what `copy` wrote, with no other copy into the same tile in between?
static bool reads(Operation *user, Operation *copy) {
  WaitOp wait = soleWait(copy->getResult(0));
  Operation *here = wait ? wait->getBlock()->findAncestorOpInBlock(*user) : nullptr;
  return here && wait->isBeforeInBlock(here) && llvm::none_of(destinationOf(copy).getUsers(), [&](Operation *other) {
           Operation *there = destinationOf(other) ? wait->getBlock()->findAncestorOpInBlock(*other) : nullptr;
           return there && wait->isBeforeInBlock(there) && (there == here || there->isBeforeInBlock(here));
         });
}

/// Can a ring replace the destination of `copy`? The wait has to be in the same block as the copy, and every read has
/// to follow that wait and precede the next copy into the tile.
static bool fitsRing(Operation *copy) {
  WaitOp wait = soleWait(copy->getResult(0));
  Value place = destinationOf(copy);
  auto copies = llvm::make_filter_range(place.getUsers(), [](Operation *user) { return bool(destinationOf(user)); });
  return wait && wait->getBlock() == copy->getBlock() && place.getDefiningOp<AllocOp>() &&
         llvm::all_of(place.getUsers(), [&](Operation *user) {
           return destinationOf(user) || llvm::any_of(copies, [&](Operation *other) { return reads(user, other); });
         });
}

static DenseMap<Value, Value> makeRings(PersistentLoopOp persist, WarpSpecializedInterface schedule) {
  DenseMap<Value, Value> rings;
  OpBuilder b(persist);
  persist.walk([&](Operation *copy) {
    Value tile = destinationOf(copy);
    if (!tile || rings.contains(tile))
      return;
    bool often = llvm::any_of(tile.getUsers(),
                              [](Operation *user) { return destinationOf(user) && user->getParentOfType<KvLoopOp>(); });
    auto place = tile.getDefiningOp<AllocOp>();
    int64_t stages = place.getSlots().value_or(often ? schedule.getStages() : schedule.getQStages());
    auto type = RingType::get(b.getContext(), stages, tile.getType());
    rings[tile] = AllocOp::create(b, place.getLoc(), type, place.getName());
  });
  return rings;
}

//===----------------------------------------------------------------------===//
// Producer
//===----------------------------------------------------------------------===//

/// The producer applies no mask, so each run becomes one segment.
static void mergeSegments(KvLoopOp loop) {
  SmallVector<Value> bounds;
  SmallVector<Attribute> runs;
  Builder b(loop.getContext());
  for (const KvLoopOp::Run &run : loop.getRunList()) {
    bounds.append({run.bounds.front(), run.bounds.back()});
    runs.push_back(b.getArrayAttr(b.getDenseI64ArrayAttr({})));
  }
  loop.getBoundsMutable().assign(bounds);
  loop.getOwnMutable().clear();
  loop.setTestsAttr(b.getArrayAttr(runs));
}

/// Keeps scalars, loops and ops that already belong to a role. Calls `keep` on each compute op, then erases that op.
static void keepRoleOps(PersistentLoopOp persist, llvm::function_ref<void(Operation *)> keep) {
  SmallVector<Operation *> gone;
  persist.walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto behavior = dyn_cast<TileOpInterface>(op);
    if (!behavior || behavior.getRole() != Role::compute)
      return WalkResult::advance();
    keep(op);
    gone.push_back(op);
    return WalkResult::skip();
  });
  for (Operation *op : llvm::reverse(gone))
    op->erase();
  persist.walk([](KvLoopOp loop) { mergeSegments(loop); });
}

static void writeProducer(PersistentLoopOp persist, const DenseMap<Value, Value> &rings) {
  keepRoleOps(persist, [&](Operation *op) {
    OpBuilder b(op);
    if (auto copy = dyn_cast<CopyRowStatisticsOp>(op))
      ProducerLoadRowStatisticsOp::create(b, copy.getLoc(), rings.lookup(copy.getDst()), copy.getSrc(),
                                          copy.getPitch());
    if (auto copy = dyn_cast<CopyTmaOp>(op))
      ProducerLoadOp::create(b, copy.getLoc(), rings.lookup(copy.getDst()), copy.getMap(), copy.getRow(),
                             copy.getHead(), copy.getBatch(), copy.getRows(), copy.getBoxesAttr());
  });
}

//===----------------------------------------------------------------------===//
// dQ store warps and dQ MMA warpgroup
//===----------------------------------------------------------------------===//

static bool isStaged(Operation *op) {
  auto sum = dyn_cast<AddGlobalOp>(op);
  return sum && sum.getStaging();
}

static void writeDqStore(PersistentLoopOp persist, Value staging, int64_t blocks) {
  keepRoleOps(persist, [&](Operation *op) {
    if (!isStaged(op))
      return;
    auto sum = cast<AddGlobalOp>(op);
    OpBuilder b(op);
    if (sum.getSoleWriter()) {
      auto soleWriter = scf::IfOp::create(b, sum.getLoc(), sum.getSoleWriter(), /*withElseRegion=*/true);
      b.setInsertionPointToStart(soleWriter.thenBlock());
      SkipAddOp::create(b, sum.getLoc(), sum.getSemaphore());
      b.setInsertionPointToStart(soleWriter.elseBlock());
    }
    auto staged =
        AddStagedOp::create(b, sum.getLoc(), sum.getSum(), staging, sum.getLeft(), sum.getSemaphore(), sum.getTile(),
                            sum.getFirstTile(), sum.getAcc().getType().getCols(), blocks, sum.getAfterFirst());
    staged.getAdds().takeBody(sum.getAdds());
  });
}

/// Recomputes an address at `b`, so that it occupies no registers before.
static Value recomputedAddress(OpBuilder &b, Value value, Region &role) {
  Operation *op = value.getDefiningOp();
  bool isWide = isa<PtrType>(value.getType()) || value.getType().isInteger(64);
  if (!op || !isWide || !isPure(op) || !role.isAncestor(op->getParentRegion()))
    return value;
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, recomputedAddress(b, operand, role));
  return b.clone(*op, operands)->getResult(0);
}

/// Stores block `i` of dQ, or adds it to the accumulator. Blocks are numbered over rows first, then over columns.
static void storeDqBlock(OpBuilder b, AddGlobalOp sum, Value staging, Value acc, int64_t i, int64_t blocks,
                         int64_t rowBlocks) {
  Location loc = sum.getLoc();
  auto wide = [&](int64_t x) -> Value { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(x)); };
  if (sum.getSoleWriter()) {
    int64_t first = i % rowBlocks * 64, column = i / rowBlocks * cast<FragType>(acc.getType()).getCols();
    int64_t columns = std::min(int64_t(*sum.getDim()) - column, cast<FragType>(acc.getType()).getCols());
    auto soleWriter = scf::IfOp::create(b, loc, sum.getSoleWriter(), /*withElseRegion=*/true);
    b.setInsertionPointToStart(soleWriter.thenBlock());
    Value offset = arith::MulIOp::create(b, loc, sum.getStride(), wide(first)), rows = sum.getRows();
    Value dst = recomputedAddress(b, sum.getDst(), sum->getParentOfType<PersistentLoopOp>().getBody());
    dst = AdvanceOp::create(b, loc, dst, arith::AddIOp::create(b, loc, offset, wide(column)));
    if (first)
      rows = arith::SubIOp::create(b, loc, rows, arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(first)));
    if (columns > 0)
      StoreOp::create(b, loc, dst, sum.getStride(), acc, rows, rows, b.getI64IntegerAttr(columns), sum.getFactorAttr());
    b.setInsertionPointToStart(soleWriter.elseBlock());
  }
  if (sum.getStaging().getType().getBytes())
    StageOp::create(b, loc, staging, acc);
  else
    AddGlobalOrderedOp::create(b, loc, sum.getSum(), acc, sum.getLeft(), staging, /*block=*/i,
                               /*last=*/i + 1 == blocks);
}

/// Writes the role of the dQ MMA warpgroup: multiplies each dS tile of the ring with K, 64 rows of dQ at a time.
static void writeDqMma(PersistentLoopOp persist, const DenseMap<Value, Value> &rings, Value staging, int64_t blocks) {
  MmaAtbOp product;
  persist.walk([&](MmaAtbOp op) { product = op; });
  auto all = cast<FragType>(product.getAcc().getType());
  auto one = FragType::get(all.getContext(), 64, all.getCols(), 4);
  OpBuilder top(persist);
  Value keys = product.getB(), acc = AllocOp::create(top, product.getLoc(), one, "dQ"), ring;
  ConsumerWaitOp waitKeys;
  keepRoleOps(persist, [&](Operation *op) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    if (destinationOf(op) == keys)
      waitKeys = ConsumerWaitOp::create(b, loc, rings.lookup(keys));
    if (auto store = dyn_cast<StoreAndSyncOp>(op))
      ring = store.getRing();
    if (!isStaged(op))
      return;
    Value tile = ConsumerWaitOp::create(b, loc, ring).getTile();
    for (int64_t i = 0; i < blocks; ++i) {
      Value token =
          MmaAtbOp::create(b, loc, acc, tile, waitKeys.getTile(), b.getI64IntegerAttr(i), b.getI64IntegerAttr(blocks));
      WaitOp::create(b, loc, token);
      if (i + 1 == blocks)
        ConsumerReleaseOp::create(b, loc, ring);
      storeDqBlock(b, cast<AddGlobalOp>(op), staging, acc, i, blocks,
                   /*rowBlocks=*/cast<SharedType>(product.getA().getType()).getCols() / 64);
    }
  });
  Block *block = waitKeys->getBlock();
  OpBuilder b = OpBuilder::atBlockEnd(block);
  if (!block->empty() && block->back().hasTrait<OpTrait::IsTerminator>())
    b.setInsertionPoint(&block->back());
  ConsumerReleaseOp::create(b, waitKeys.getLoc(), waitKeys.getRing());
}

/// Recomputes what follows from kernel arguments in each work tile, for roles with few registers.
static void recomputeInLoop(PersistentLoopOp persist) {
  attn::tile::recomputeInLoop(persist, OpBuilder::atBlockBegin(&persist.getBody().front()));
}

/// Rewrites the dQ ops of consumers: with a dQ MMA warpgroup they store dS into its ring; otherwise they compute the
/// product and stage it for the dQ store warps.
static void stageInConsumers(PersistentLoopOp persist, bool hasDqMma) {
  SmallVector<Operation *> ops;
  persist.walk([&](Operation *op) {
    if (isStaged(op) || (hasDqMma && isa<StoreAndSyncOp, MmaAtbOp>(op)))
      ops.push_back(op);
  });
  for (Operation *op : llvm::reverse(ops)) {
    OpBuilder b(op);
    if (auto store = dyn_cast<StoreAndSyncOp>(op)) {
      ProducerStoreOp::create(b, op->getLoc(), store.getRing(), store.getOperand());
      ProducerCommitOp::create(b, op->getLoc(), store.getRing());
    } else if (auto product = dyn_cast<MmaAtbOp>(op)) {
      soleWait(product.getToken())->erase();
    } else if (auto sum = cast<AddGlobalOp>(op); !hasDqMma && sum.getStaging().getType().getBytes()) {
      StageOp::create(b, op->getLoc(), sum.getStaging(), sum.getAcc());
    } else if (!hasDqMma) {
      AddGlobalOrderedOp::create(b, op->getLoc(), sum.getSum(), sum.getAcc(), sum.getLeft(), sum.getStaging(),
                                 /*block=*/0,
                                 /*last=*/true);
    }
    op->erase();
  }
}

//===----------------------------------------------------------------------===//
// Consumer
//===----------------------------------------------------------------------===//

/// Replaces a copy and its wait by a wait for the ring, and releases the ring after the last reader.
static void writeConsumer(Operation *copy, Value ring) {
  WaitOp wait = soleWait(copy->getResult(0));
  OpBuilder b(wait);
  auto consumerWait = ConsumerWaitOp::create(b, wait.getLoc(), ring);
  SmallVector<Operation *> ends = {consumerWait};
  auto persist = copy->getParentOfType<PersistentLoopOp>();
  for (OpOperand &use : llvm::make_early_inc_range(destinationOf(copy).getUses())) {
    Operation *user = use.getOwner();
    if (destinationOf(user) || !persist->isProperAncestor(user) || !reads(user, copy))
      continue;
    use.set(consumerWait.getTile());
    ends.push_back(endOf(user));
  }
  Operation *last = lastIn(*consumerWait->getBlock(), ends);
  releaseInside(last, ring, ends);
  b.setInsertionPointAfter(last);
  ConsumerReleaseOp::create(b, copy->getLoc(), ring);
  wait.erase();
  copy->erase();
}

/// A loop over steps whose tile the warpgroup's rows do not see: releases all loaded tiles and stores zeros into rings
/// that other roles read.
static void passStep(KvLoopOp loop, Value from, Value to, OpBuilder b) {
  Location loc = loop.getLoc();
  auto steps = scf::ForOp::create(b, loc, from, to, arith::ConstantIntOp::create(b, loc, 1, 32));
  b.setInsertionPointToStart(steps.getBody());
  for (Operation &op : loop.getBody().front()) {
    if (auto consumerWait = dyn_cast<ConsumerWaitOp>(op)) {
      ConsumerWaitOp::create(b, loc, consumerWait.getRing());
      ConsumerReleaseOp::create(b, loc, consumerWait.getRing());
    }
    if (auto store = dyn_cast<ProducerStoreOp>(op);
        store && !int64_t(store.getFirst().value_or(0))) { // once for all rows of a tile
      ProducerStoreOp::create(b, loc, store.getRing(), /*operand=*/Value());
      ProducerCommitOp::create(b, loc, store.getRing());
    }
  }
}

/// Restricts the loop of each warpgroup to the tiles that its own rows see.
static void keepToOwn(KvLoopOp loop) {
  SmallVector<Value> own(loop.getOwn());
  if (own.empty())
    return;
  OpBuilder b(loop);
  passStep(loop, loop.getBounds().front(), own.front(), b);
  b.setInsertionPointAfter(loop);
  passStep(loop, own.back(), loop.getBounds().back(), b);
  loop.getBoundsMutable().assign(own);
  loop.getOwnMutable().clear();
}

static bool containsOp(Operation *program, llvm::function_ref<bool(Operation *)> wanted) {
  return program->walk([&](Operation *op) { return wanted(op) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

/// Registers of a thread of the dQ MMA warpgroup: its accumulator takes half a register for each column, and ptxas
/// keeps 24 for everything else.
static int64_t registersOfDqMma(WarpSpecializedInterface schedule) {
  return schedule.getDqColumns() ? 32 + schedule.getDqColumns() / 2 : 0;
}

/// Is there a loop over ranges of rows, which reads where each begins, where it ends and where it lies?
static bool walksRanges(PersistentLoopOp program) {
  return containsOp(program, [](Operation *op) {
    auto loop = dyn_cast<scf::ForOp>(op);
    return loop && !loop.getBody()->getOps<KvLoopOp>().empty() &&
           llvm::range_size(loop.getBody()->getOps<LoadOp>()) >= 3;
  });
}

/// Registers of a thread of the producer and dQ store warps, and of consumers: multiples of 8 that add up to the
/// register file of a multiprocessor.
static std::pair<int64_t, int64_t> registersOf(KernelOp kernel, PersistentLoopOp program, bool hasDqStore) {
  WarpSpecializedInterface schedule = kernel.getRoles();
  constexpr int64_t warpgroup = 128, most = 240;
  int64_t dqMmaRegisters = registersOfDqMma(schedule);
  // setmaxnreg beyond the CTA's registers at launch would never return.
  int64_t atLaunch = schedule.getRegistersAtLaunch() * kernel.getThreads();
  // The producer and the dQ store warps get 48 registers if consumers can spare these, not with wide query tiles.
  bool spares = !containsOp(kernel, [](Operation *op) {
    auto probabilities = dyn_cast<ProbabilitiesOp>(op);
    return isa<DropoutGradScoresOp>(op) || (probabilities && !probabilities.getModify().empty());
  });
  bool scarce = schedule.getDqColumns() || schedule.getWarps() * schedule.getCtasPerSm() >= 12;
  int64_t few = scarce ? 32 : hasDqStore && spares && schedule.getQTile() <= 64 ? 48 : 40;
  auto many = [&](int64_t few) {
    return std::min((atLaunch / warpgroup - few - dqMmaRegisters) / (schedule.getWarps() / 4) / 8 * 8, most);
  };
  // Where consumers' fragments leave registers free, a producer with much address arithmetic gets 32 more. One that
  // walks ranges of queries has more of it in the loop over these, and gets 32 or 16.
  auto leaves = [&](int64_t more) { return many(few + more) - registersOfFragments(kernel); };
  if (kernel.getKeys() && walksRanges(program)) {
    if (many(few + 32) == many(few) || leaves(32) >= 60)
      few += 32;
    else if (leaves(16) >= 44)
      few += 16;
  } else if (hasManyArithOps(program.getBody().front()) && leaves(32) >= 96) {
    few += 32;
  }
  return {few, many(few)};
}

namespace {
struct AssignRolesPass : attn::tile::impl::AssignRolesBase<AssignRolesPass> {
  using Base::Base;

  void runOnOperation() final {
    KernelOp kernel = getOperation();
    if (!kernel.isPersistent())
      return;
    auto found = kernel.getBody().getOps<PersistentLoopOp>();
    if (!llvm::hasSingleElement(found)) {
      kernel.emitError("expected one `tile.persistent_loop` around the kernel's program");
      return signalPassFailure();
    }
    PersistentLoopOp consumer = *found.begin();
    WalkResult tokens = consumer.walk([](Operation *op) {
      if (destinationOf(op) && !fitsRing(op))
        op->emitOpError("expected one wait beside it, and what reads its place behind that, before another copy to it");
      else if (isProduct(op) && !llvm::all_of(op->getUsers(), llvm::IsaPred<WaitOp>))
        op->emitOpError("expected its token to be waited for and not to be carried around a loop");
      else
        return WalkResult::advance();
      return WalkResult::interrupt();
    });
    if (tokens.wasInterrupted())
      return signalPassFailure();

    // With a loop over heads, the producer has no registers for all published scalars at once.
    hoistScalars(consumer,
                 /*scarce=*/kernel.getRoles().getDqColumns() && !containsOp(consumer, llvm::IsaPred<scf::ForOp>));
    DenseMap<Value, Value> rings = makeRings(consumer, kernel.getRoles());
    OpBuilder b(consumer);
    bool hasDqStore = containsOp(consumer, isStaged);
    bool hasDqMma = kernel.getRoles().getDqColumns() != 0;
    if (hasDqMma && !(hasDqStore && containsOp(consumer, llvm::IsaPred<StoreAndSyncOp>))) {
      kernel.emitError(
          "expected `tile.store_and_sync` and a staged `tile.add_global`, since the schedule has dq_columns");
      return signalPassFailure();
    }
    auto [few, many] = registersOf(kernel, consumer, hasDqStore);
    auto roles = RolesOp::create(b, consumer.getLoc(), few, many,
                                 hasDqMma ? b.getI64IntegerAttr(registersOfDqMma(kernel.getRoles())) : IntegerAttr());
    Block &producers = roles.getProducer().emplaceBlock(), &consumers = roles.getConsumer().emplaceBlock();
    IRMapping inProducer;
    b.setInsertionPointToEnd(&producers);
    auto producer = cast<PersistentLoopOp>(b.clone(*consumer, inProducer));
    consumer->moveBefore(&consumers, consumers.end());

    publishScalars(producer, consumer, inProducer);
    writeProducer(producer, rings);
    if (hasDqStore) {
      Value staging;
      consumer.walk([&](AddGlobalOp sum) { staging = sum.getStaging(); });
      int64_t blocks = 1;
      if (hasDqMma) {
        consumer.walk([&](MmaAtbOp product) { blocks = cast<FragType>(product.getAcc().getType()).getWarps() / 4; });
        auto all = staging.getDefiningOp<AllocOp>();
        auto type = cast<StagingType>(all.getType());
        b.setInsertionPoint(all);
        if (type.getBytes())
          staging = AllocOp::create(
              b, all.getLoc(), StagingType::get(b.getContext(), type.getSlots() * blocks, type.getBytes() / blocks),
              all.getName());
        b.setInsertionPointToEnd(&roles.getDqMma().emplaceBlock());
        auto dqMma = cast<PersistentLoopOp>(b.clone(*consumer));
        writeDqMma(dqMma, rings, staging, blocks);
        recomputeInLoop(dqMma);
      }
      b.setInsertionPointToEnd(&roles.getDqStore().emplaceBlock());
      auto dqStore = cast<PersistentLoopOp>(b.clone(*consumer));
      writeDqStore(dqStore, staging, blocks);
      stageInConsumers(consumer, hasDqMma);
      recomputeInLoop(producer);
      recomputeInLoop(dqStore);
    }
    if (kernel.isStationaryQBackward()) // the producer has many rings
      for (PersistentLoopOp role : {producer, consumer})
        recomputeInLoop(role);
    SmallVector<Operation *> taken;
    consumer.walk([&](Operation *op) {
      if (destinationOf(op))
        taken.push_back(op);
    });
    for (Operation *copy : taken)
      writeConsumer(copy, rings.lookup(destinationOf(copy)));
    consumer.walk([](KvLoopOp loop) { keepToOwn(loop); });

    // Fragments move to the consumer; tiles that rings replaced are erased.
    for (auto place : llvm::make_early_inc_range(kernel.getBody().getOps<AllocOp>())) {
      if (place.use_empty())
        place.erase();
      else if (isa<FragType, RegisterOperandType, SoftmaxStateType>(place.getType()))
        place->moveBefore(consumer);
    }
    for (auto place : kernel.getBody().getOps<AllocOp>())
      if (std::optional<RingUse> use = place.findRingUse(); use && *use != RingUse::loaded)
        place.setUse(use);
    // With ordered dQ accumulation, a CTA waits for CTAs of lower number.
    producer.setInOrder(containsOp(roles, [](Operation *op) {
      auto add = dyn_cast<AddStagedOp>(op);
      return add && add.getSemaphore();
    }));
    roles.walk([](AllocOp place) { // allocations within a branch that this role does not use
      if (place.use_empty())
        place.erase();
    });
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, roles->getRegions());
  }
};
} // namespace
