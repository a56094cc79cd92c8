// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program is written twice. The producer's copy keeps the scalars, the loops
// and the copies; the consumer's keeps everything else. Where one copied into a
// place and waited, the producer now fills a ring and the consumer takes from it.
// Where something is added up in memory through a staging place, the program is written a
// third time: the consumer writes it there, and the adder keeps scalars, loops and what is added.
// With a reducer it is written a fourth time: the product that is added up is the reducer's then, and
// of it the consumer keeps only what puts the left operand into a ring.
//
#include "PublishedNumbers.h"
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

/// The place that a copy brings something to; null if it is none that a ring may stand for.
static Value destinationOf(Operation *op) {
  if (auto copy = dyn_cast<CopyTmaOp>(op))
    return copy.getDst();
  if (auto copy = dyn_cast<CopyRowStatisticsOp>(op))
    return copy.getDst();
  return {};
}

/// Does it read what this copy brought, and nothing that was copied there since?
static bool reads(Operation *user, Operation *copy) {
  WaitOp wait = soleWait(copy->getResult(0));
  Operation *here = wait ? wait->getBlock()->findAncestorOpInBlock(*user) : nullptr;
  return here && wait->isBeforeInBlock(here) && llvm::none_of(destinationOf(copy).getUsers(), [&](Operation *other) {
           Operation *there = destinationOf(other) ? wait->getBlock()->findAncestorOpInBlock(*other) : nullptr;
           return there && wait->isBeforeInBlock(there) && (there == here || there->isBeforeInBlock(here));
         });
}

/// Can a ring stand for the place that is copied into? Its tiles are waited for beside
/// the copies, and read behind that only, and before anything else is copied there.
static bool fitsRing(Operation *copy) {
  WaitOp wait = soleWait(copy->getResult(0));
  Value place = destinationOf(copy);
  auto copies = llvm::make_filter_range(place.getUsers(), [](Operation *user) { return bool(destinationOf(user)); });
  return wait && wait->getBlock() == copy->getBlock() && place.getDefiningOp<AllocOp>() &&
         llvm::all_of(place.getUsers(), [&](Operation *user) {
           return destinationOf(user) || llvm::any_of(copies, [&](Operation *other) { return reads(user, other); });
         });
}

/// A ring for every place that is copied into.
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
    int64_t slots = place.getSlots().value_or(often ? schedule.getStages() : schedule.getQStages());
    auto type = RingType::get(b.getContext(), slots, tile.getType());
    rings[tile] = AllocOp::create(b, place.getLoc(), type, place.getName());
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
  loop.getOwnMutable().clear();
  loop.setRunsAttr(b.getArrayAttr(runs));
}

/// Leaves scalars, loops and what is the role's already, and what `keep` makes of an operation before that goes.
static void strip(PersistentLoopOp persist, llvm::function_ref<void(Operation *)> keep) {
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

static void produce(PersistentLoopOp persist, const DenseMap<Value, Value> &rings) {
  strip(persist, [&](Operation *op) {
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
// Adder and reducer
//===----------------------------------------------------------------------===//

static bool isStaged(Operation *op) {
  auto sum = dyn_cast<AddGlobalOp>(op);
  return sum && sum.getStaging();
}

static void add(PersistentLoopOp persist, Value staging, int64_t blocks) {
  strip(persist, [&](Operation *op) {
    if (!isStaged(op))
      return;
    auto sum = cast<AddGlobalOp>(op);
    OpBuilder b(op);
    if (sum.getSoleWriter()) {
      auto alone = scf::IfOp::create(b, sum.getLoc(), sum.getSoleWriter(), /*withElseRegion=*/true);
      b.setInsertionPointToStart(alone.thenBlock());
      SkipAddOp::create(b, sum.getLoc(), sum.getSemaphore());
      b.setInsertionPointToStart(alone.elseBlock());
    }
    auto staged = AddStagedOp::create(b, sum.getLoc(), sum.getSum(), staging, sum.getLeft(), sum.getSemaphore(),
                                      sum.getTile(), sum.getAcc().getType().getCols(), blocks, sum.getAfterFirst());
    staged.getAdds().takeBody(sum.getAdds());
  });
}

/// The same address, worked out where `b` is: nothing of it takes registers before.
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

/// What becomes of block `i` of dQ. Blocks of all rows come first, then those of the next columns.
static void leave(OpBuilder b, AddGlobalOp sum, Value staging, Value acc, int64_t i, int64_t blocks,
                  int64_t rowBlocks) {
  Location loc = sum.getLoc();
  auto wide = [&](int64_t x) -> Value { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(x)); };
  if (sum.getSoleWriter()) {
    int64_t first = i % rowBlocks * 64, column = i / rowBlocks * cast<FragType>(acc.getType()).getCols();
    int64_t columns = std::min(int64_t(*sum.getDim()) - column, cast<FragType>(acc.getType()).getCols());
    auto alone = scf::IfOp::create(b, loc, sum.getSoleWriter(), /*withElseRegion=*/true);
    b.setInsertionPointToStart(alone.thenBlock());
    Value offset = arith::MulIOp::create(b, loc, sum.getStride(), wide(first)), rows = sum.getRows();
    Value dst = recomputedAddress(b, sum.getDst(), sum->getParentOfType<PersistentLoopOp>().getBody());
    dst = AdvanceOp::create(b, loc, dst, arith::AddIOp::create(b, loc, offset, wide(column)));
    if (first)
      rows = arith::SubIOp::create(b, loc, rows, arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(first)));
    if (columns > 0)
      StoreOp::create(b, loc, dst, sum.getStride(), acc, rows, rows, b.getI64IntegerAttr(columns), sum.getFactorAttr());
    b.setInsertionPointToStart(alone.elseBlock());
  }
  if (sum.getStaging().getType().getBytes())
    StageOp::create(b, loc, staging, acc);
  else
    AddGlobalOrderedOp::create(b, loc, sum.getSum(), acc, sum.getLeft(), staging, /*block=*/i,
                               /*last=*/i + 1 == blocks);
}

/// Takes what consumers put into a ring and multiplies it with the keys, a block of 64 rows at a time.
static void reduce(PersistentLoopOp persist, const DenseMap<Value, Value> &rings, Value staging, int64_t blocks) {
  MmaAtbOp product;
  persist.walk([&](MmaAtbOp op) { product = op; });
  auto all = cast<FragType>(product.getAcc().getType());
  auto one = FragType::get(all.getContext(), 64, all.getCols(), 4);
  OpBuilder top(persist);
  Value keys = product.getB(), acc = AllocOp::create(top, product.getLoc(), one, "dQ"), ring;
  ConsumerWaitOp takeKeys;
  strip(persist, [&](Operation *op) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    if (destinationOf(op) == keys)
      takeKeys = ConsumerWaitOp::create(b, loc, rings.lookup(keys));
    if (auto share = dyn_cast<StoreAndSyncOp>(op))
      ring = share.getRing();
    if (!isStaged(op))
      return;
    Value tile = ConsumerWaitOp::create(b, loc, ring).getTile();
    for (int64_t i = 0; i < blocks; ++i) {
      Value token =
          MmaAtbOp::create(b, loc, acc, tile, takeKeys.getTile(), b.getI64IntegerAttr(i), b.getI64IntegerAttr(blocks));
      WaitOp::create(b, loc, token);
      if (i + 1 == blocks)
        ConsumerReleaseOp::create(b, loc, ring);
      leave(b, cast<AddGlobalOp>(op), staging, acc, i, blocks,
            /*rowBlocks=*/cast<SharedType>(product.getA().getType()).getCols() / 64);
    }
  });
  Block *block = takeKeys->getBlock();
  OpBuilder b = OpBuilder::atBlockEnd(block);
  if (!block->empty() && block->back().hasTrait<OpTrait::IsTerminator>())
    b.setInsertionPoint(&block->back());
  ConsumerReleaseOp::create(b, takeKeys.getLoc(), takeKeys.getRing());
}

/// Of a role with few registers: what follows from arguments is worked out for each tile.
static void recomputeInLoop(PersistentLoopOp persist) {
  attn::tile::recomputeInLoop(persist, OpBuilder::atBlockBegin(&persist.getBody().front()));
}

/// What is left of it for those who compute: the product, or what puts its left operand where the reducer takes it.
static void stage(PersistentLoopOp persist, bool reduces) {
  SmallVector<Operation *> ops;
  persist.walk([&](Operation *op) {
    if (isStaged(op) || (reduces && isa<StoreAndSyncOp, MmaAtbOp>(op)))
      ops.push_back(op);
  });
  for (Operation *op : llvm::reverse(ops)) {
    OpBuilder b(op);
    if (auto share = dyn_cast<StoreAndSyncOp>(op)) {
      ProducerStoreOp::create(b, op->getLoc(), share.getRing(), share.getOperand());
      ProducerCommitOp::create(b, op->getLoc(), share.getRing());
    } else if (auto product = dyn_cast<MmaAtbOp>(op)) {
      soleWait(product.getToken())->erase();
    } else if (auto sum = cast<AddGlobalOp>(op); !reduces && sum.getStaging().getType().getBytes()) {
      StageOp::create(b, op->getLoc(), sum.getStaging(), sum.getAcc());
    } else if (!reduces) {
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

/// Takes the place's tile where it was waited for, and releases it behind its last reader.
static void consume(Operation *copy, Value ring) {
  WaitOp wait = soleWait(copy->getResult(0));
  OpBuilder b(wait);
  auto take = ConsumerWaitOp::create(b, wait.getLoc(), ring);
  SmallVector<Operation *> ends = {take};
  auto persist = copy->getParentOfType<PersistentLoopOp>();
  for (OpOperand &use : llvm::make_early_inc_range(destinationOf(copy).getUses())) {
    Operation *user = use.getOwner();
    if (destinationOf(user) || !persist->isProperAncestor(user) || !reads(user, copy))
      continue;
    use.set(take.getTile());
    ends.push_back(endOf(user));
  }
  Operation *last = lastIn(*take->getBlock(), ends);
  releaseInside(last, ring, ends);
  b.setInsertionPointAfter(last);
  ConsumerReleaseOp::create(b, copy->getLoc(), ring);
  wait.erase();
  copy->erase();
}

/// Of a step in which the warpgroup's rows have nothing to do: all that is brought is given back, and zeros are put
/// where others read.
static void passStep(KvLoopOp loop, Value from, Value to, OpBuilder b) {
  Location loc = loop.getLoc();
  auto steps = scf::ForOp::create(b, loc, from, to, arith::ConstantIntOp::create(b, loc, 1, 32));
  b.setInsertionPointToStart(steps.getBody());
  for (Operation &op : loop.getBody().front()) {
    if (auto take = dyn_cast<ConsumerWaitOp>(op)) {
      ConsumerWaitOp::create(b, loc, take.getRing());
      ConsumerReleaseOp::create(b, loc, take.getRing());
    }
    if (auto put = dyn_cast<ProducerStoreOp>(op);
        put && !int64_t(put.getFirst().value_or(0))) { // of a tile's rows, once
      ProducerStoreOp::create(b, loc, put.getRing(), /*operand=*/Value());
      ProducerCommitOp::create(b, loc, put.getRing());
    }
  }
}

/// Each warpgroup walks along what its own rows see.
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

static bool holds(Operation *program, llvm::function_ref<bool(Operation *)> wanted) {
  return program->walk([&](Operation *op) { return wanted(op) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

/// Of the reducer: its product has half a register for each of its columns, and ptxas keeps 24 for everything else.
static int64_t registersOfDqMma(WarpSpecializedInterface schedule) {
  return schedule.getDqColumns() ? 32 + schedule.getDqColumns() / 2 : 0;
}

/// Registers of a thread, of the roles that do not compute and of the one that
/// does: what a multiprocessor has, shared out in eights. `adds`: there is an adder.
static std::pair<int64_t, int64_t> registersOf(KernelOp kernel, PersistentLoopOp program, bool adds) {
  WarpSpecializedInterface schedule = kernel.getRoles();
  constexpr int64_t warpgroup = 128, most = 240;
  int64_t apart = registersOfDqMma(schedule);
  // What a block is launched with is all there is: who asks for more waits forever.
  int64_t atLaunch = schedule.getRegistersAtLaunch() * kernel.getThreads();
  // Who brings and who adds need some more, if those who compute can do without: not with wide query tiles.
  bool spares = !holds(kernel, [](Operation *op) {
    auto probabilities = dyn_cast<ProbabilitiesOp>(op);
    return isa<DropoutGradScoresOp>(op) || (probabilities && !probabilities.getModify().empty());
  });
  bool scarce = schedule.getDqColumns() || schedule.getWarps() * schedule.getBlocks() >= 12;
  int64_t few = scarce ? 32 : adds && spares && schedule.getQTile() <= 64 ? 48 : 40;
  auto many = [&](int64_t few) {
    return std::min((atLaunch / warpgroup - few - apart) / (schedule.getWarps() / 4) / 8 * 8, most);
  };
  // Where fragments leave more than usual, who brings gets it, if there is much to work out.
  constexpr int64_t more = 32, left = 96;
  if (worksOutMuch(program.getBody().front()) && many(few + more) - registersOfFragments(kernel) >= left)
    few += more;
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

    // A loop over heads leaves the producer no registers for all words at once.
    hoistNumbers(consumer, /*scarce=*/kernel.getRoles().getDqColumns() && !holds(consumer, llvm::IsaPred<scf::ForOp>));
    DenseMap<Value, Value> rings = makeRings(consumer, kernel.getRoles());
    OpBuilder b(consumer);
    bool adds = holds(consumer, isStaged);
    bool reduces = kernel.getRoles().getDqColumns() != 0;
    if (reduces && !(adds && holds(consumer, llvm::IsaPred<StoreAndSyncOp>))) {
      kernel.emitError(
          "expected something shared and added up through a staging place for the dQ MMA warpgroup of its schedule");
      return signalPassFailure();
    }
    auto [few, many] = registersOf(kernel, consumer, adds);
    auto roles = RolesOp::create(b, consumer.getLoc(), few, many,
                                 reduces ? b.getI64IntegerAttr(registersOfDqMma(kernel.getRoles())) : IntegerAttr());
    Block &producers = roles.getProducer().emplaceBlock(), &consumers = roles.getConsumer().emplaceBlock();
    IRMapping inProducer;
    b.setInsertionPointToEnd(&producers);
    auto producer = cast<PersistentLoopOp>(b.clone(*consumer, inProducer));
    consumer->moveBefore(&consumers, consumers.end());

    sendScalars(producer, consumer, inProducer);
    produce(producer, rings);
    if (adds) {
      Value staging;
      consumer.walk([&](AddGlobalOp sum) { staging = sum.getStaging(); });
      int64_t blocks = 1;
      if (reduces) {
        consumer.walk([&](MmaAtbOp product) { blocks = cast<FragType>(product.getAcc().getType()).getWarps() / 4; });
        auto all = staging.getDefiningOp<AllocOp>();
        auto type = cast<StagingType>(all.getType());
        b.setInsertionPoint(all);
        if (type.getBytes())
          staging = AllocOp::create(
              b, all.getLoc(), StagingType::get(b.getContext(), type.getSlots() * blocks, type.getBytes() / blocks),
              all.getName());
        b.setInsertionPointToEnd(&roles.getDqMma().emplaceBlock());
        auto reducer = cast<PersistentLoopOp>(b.clone(*consumer));
        reduce(reducer, rings, staging, blocks);
        recomputeInLoop(reducer);
      }
      b.setInsertionPointToEnd(&roles.getDqStore().emplaceBlock());
      auto adder = cast<PersistentLoopOp>(b.clone(*consumer));
      add(adder, staging, blocks);
      stage(consumer, reduces);
      recomputeInLoop(producer);
      recomputeInLoop(adder);
    }
    if (kernel.hasStationaryRows()) // and who brings them has many rings
      for (PersistentLoopOp role : {producer, consumer})
        recomputeInLoop(role);
    SmallVector<Operation *> taken;
    consumer.walk([&](Operation *op) {
      if (destinationOf(op))
        taken.push_back(op);
    });
    for (Operation *copy : taken)
      consume(copy, rings.lookup(destinationOf(copy)));
    consumer.walk([](KvLoopOp loop) { keepToOwn(loop); });

    // Registers are the consumer's; tiles lie in rings now.
    for (auto place : llvm::make_early_inc_range(kernel.getBody().getOps<AllocOp>())) {
      if (place.use_empty())
        place.erase();
      else if (isa<FragType, RegisterOperandType, SoftmaxStateType>(place.getType()))
        place->moveBefore(consumer);
    }
    roles.walk([](AllocOp place) { // of a branch, in roles that have no use for it
      if (place.use_empty())
        place.erase();
    });
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, roles->getRegions());
  }
};
} // namespace
