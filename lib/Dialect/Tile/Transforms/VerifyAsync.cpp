// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Abstract interpretation of the kernel. The state has, for each allocation, the asynchronous op in flight into it and
// whether some warp may still be reading it, and for each token its destination. Loop bodies are interpreted twice, the
// second time with what one iteration leaves in flight; loops that run zero times are not modelled.
//
// Roles are checked one by one: what a role may do with a ring's tile depends on that role alone. Of what roles share,
// only rings are modelled, and not staging places, the mailbox, or the dQ accumulator in global memory.
//
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

namespace attn::tile {
#define GEN_PASS_DEF_VERIFYASYNC
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
/// An op in flight.
struct Flight {
  Operation *op = nullptr;
  SmallVector<Value, 2> reads; ///< allocations that it reads
};

struct State {
  DenseMap<Value, Flight> into;                ///< allocation -> what is in flight into it
  DenseMap<Value, Operation *> readers;        ///< shared allocation -> the op that some warps may still be executing
  DenseMap<Value, Value> place;                ///< token -> its destination
  DenseSet<Value> nothing;                     ///< tokens of `tile.null_product`
  DenseMap<Value, ConsumerWaitOp> waited;      ///< ring -> the wait for its current tile, not yet released
  DenseMap<Value, ConsumerAdvanceOp> advanced; ///< ring -> the advance past its previous tile, not yet released
  DenseMap<Value, SmallVector<Operation *, 2>> stored; ///< ring -> stores not yet committed
  DenseMap<Value, Operation *> overwritten;            ///< stash -> the store that overwrote it
  DenseMap<Value, Value> released;                     ///< released tile -> its ring
  SmallVector<Value> releasedEarly;                    ///< tiles that are released unless the loop has another step
};

class Checker {
public:
  LogicalResult check(Block &block, State &state) {
    for (Operation &op : block)
      if (failed(visit(&op, state)))
        return failure();
    return success();
  }

  LogicalResult checkDone(const State &state) {
    for (auto &[place, flight] : state.into)
      return flight.op->emitOpError("is never waited for");
    for (auto &[ring, current] : state.waited)
      if (!ConsumerWaitOp(current).getCondition()) // conditional on another step of the loop
        return current->emitOpError("is never followed by a release");
    for (auto &[ring, previous] : state.advanced)
      return previous->emitOpError("is never followed by a release");
    for (auto &[ring, stores] : state.stored)
      return stores.front()->emitOpError("is never committed");
    return success();
  }

  /// Checks that every ring has a producer and a consumer, and the recorded use.
  LogicalResult checkRings(KernelOp kernel) {
    for (auto place : kernel.getBody().getOps<AllocOp>()) {
      if (!isa<RingType>(place.getType()))
        continue;
      bool filled = false, waited = false;
      for (OpOperand &use : place->getUses()) {
        Access access = accessOf(use);
        filled |= access.writes && !access.reads;
        waited |= isa<ConsumerWaitOp>(use.getOwner());
      }
      if (filled != waited)
        return place.emitOpError("expected a ring with a producer and a consumer, got: one with only a ")
               << (filled ? "producer" : "consumer");
      if (std::optional<RingUse> use = place.findRingUse(); use && place.getRingUse() != *use)
        return place.emitOpError("expected `ring ")
               << stringifyRingUse(*use) << "` as its uses have it, got: " << stringifyRingUse(place.getRingUse());
    }
    return success();
  }

private:
  LogicalResult complain(Operation *op, Value place, StringRef what, Operation *other, StringRef note) {
    std::string name = "a place";
    if (auto decl = place.getDefiningOp<AllocOp>())
      name = ("`" + decl.getName() + "`").str();
    InFlightDiagnostic error = op->emitOpError(what) << " " << name;
    error.attachNote(other->getLoc()) << note;
    return error;
  }

  /// Do two allocations reuse the same bytes (`tile-allocate-shared`)?
  static bool overlap(Value a, Value b) {
    auto one = a.getDefiningOp<AllocOp>(), other = b.getDefiningOp<AllocOp>();
    if (!one || !other || one == other || !one.getOffset() || !other.getOffset())
      return false;
    auto first = dyn_cast<SharedType>(one.getType()), second = dyn_cast<SharedType>(other.getType());
    return first && second && int64_t(*one.getOffset()) < int64_t(*other.getOffset()) + second.getSharedBytes() &&
           int64_t(*other.getOffset()) < int64_t(*one.getOffset()) + first.getSharedBytes();
  }

  /// Checks that no warp reads the allocation, or another one in the same bytes.
  LogicalResult overwrite(Operation *op, Value place, State &state) {
    place = wholeOf(place);
    for (auto &[other, reader] : state.readers)
      if (other == place || overlap(other, place))
        return complain(op, other, "overwrites", reader,
                        "which other warps may still be reading here: no wait for a copy lies between");
    for (auto &[other, flight] : state.into)
      if (overlap(other, place))
        return complain(op, other, "overwrites", flight.op, "while this is in flight into it");
    return success();
  }

  LogicalResult touch(Operation *op, Value place, State &state, bool write) {
    place = wholeOf(place);
    if (state.released.contains(place))
      return op->emitOpError("reads a tile of a ring that it has released");
    if (auto it = state.overwritten.find(place); it != state.overwritten.end()) {
      InFlightDiagnostic error = op->emitOpError("reads or writes a stash in a slot where a tile lies now");
      error.attachNote(it->second->getLoc()) << "which is stored there here";
      return error;
    }
    if (auto it = state.into.find(place); it != state.into.end())
      return complain(op, place, write ? "writes" : "reads", it->second.op, "while this is in flight into it");
    if (write)
      for (auto &[other, flight] : state.into)
        if (llvm::is_contained(flight.reads, place))
          return complain(op, place, "writes", flight.op, "while this is in flight and reads it");
    return success();
  }

  /// Applies the op's accesses: they take effect at once, or are in flight until its token is waited for.
  LogicalResult access(Operation *op, State &state) {
    auto behavior = cast<TileOpInterface>(op);
    Flight flight = {op, {}};
    SmallVector<Value> written;
    SmallVector<Access, 4> accesses = behavior.getAccesses();
    for (auto [operand, reads, writes] : accesses) {
      Value place = wholeOf(operand->get());
      if (writes)
        written.push_back(place);
      else if (failed(touch(op, place, state, /*write=*/false)))
        return failure();
      else
        flight.reads.push_back(place);
      if (auto current = place.getDefiningOp<ConsumerWaitOp>(); current && current.getElseTile())
        flight.reads.push_back(wholeOf(current.getElseTile()));
    }
    for (Value place : written)
      if ((isShared(place.getType()) && failed(overwrite(op, place, state))) ||
          failed(touch(op, place, state, /*write=*/true)))
        return failure();
    for (auto [operand, reads, writes] : accesses)
      if (reads && isShared(operand->get().getType()))
        state.readers[wholeOf(operand->get())] = op;
    if (behavior.endsWithBarrier())
      state.readers.clear();
    if (Value token = behavior.getTokenOfAccesses())
      for (Value place : written) {
        state.into[place] = flight;
        state.place[token] = place;
      }
    return success();
  }

  /// An op without a case in `visit`. Its regions may run any number of times.
  LogicalResult other(Operation *op, State &state) {
    auto behavior = dyn_cast<TileOpInterface>(op);
    if (Dialect *dialect = op->getDialect(); !behavior && dialect && dialect->getRegisteredInterface<BehaviorTable>())
      return op->emitError("expected an op that says what it reads and writes (TileOpInterface), got: ")
             << op->getName();
    if (!behavior && !isMemoryEffectFree(op))
      return op->emitError("expected an op without effects, or a loop or a branch of scf, got: ") << op->getName();
    if (!behavior)
      return success();
    if (failed(access(op, state)))
      return failure();
    for (int run = 0; run < 2; ++run)
      for (Region &region : op->getRegions())
        for (Block &block : region)
          if (failed(check(block, state)))
            return failure();
    return success();
  }

  LogicalResult wait(Operation *op, ValueRange tokens, State &state) {
    for (Value token : tokens) {
      if (state.nothing.contains(token))
        continue;
      auto it = state.place.find(token);
      if (it == state.place.end())
        return op->emitOpError("waits for a token that is not in flight");
      state.into.erase(it->second);
      state.place.erase(it);
    }
    if (cast<TokenType>(tokens.front().getType()).getKind() == TokenKind::copy)
      state.readers.clear();
    return success();
  }

  LogicalResult consumerWait(ConsumerWaitOp op, State &state) {
    if (auto it = state.waited.find(op.getRing()); it != state.waited.end() && !it->second.getCondition())
      return complain(op, op.getRing(), "waits for a tile of", it->second, "of which this tile is not released");
    if (failed(access(op, state)))
      return failure();
    state.waited[op.getRing()] = op;
    state.released.erase(op.getTile());
    state.readers.erase(op.getTile()); // readers of the previous tile
    return success();
  }

  LogicalResult consumerAdvance(ConsumerAdvanceOp op, State &state) {
    auto it = state.waited.find(op.getRing());
    if (it == state.waited.end())
      return op.emitOpError("advances a ring without a current tile");
    if (auto other = state.advanced.find(op.getRing()); other != state.advanced.end())
      return complain(op, op.getRing(), "advances", other->second, "of which this one is not released");
    state.released[it->second.getTile()] = op.getRing(); // `op` renames the tile
    state.released.erase(op.getTile());
    state.waited.erase(it);
    state.advanced[op.getRing()] = op;
    return success();
  }

  LogicalResult producerStore(Operation *op, Value ring, State &state) {
    for (Operation *other : state.stored.lookup(ring))
      if (storeSameRows(op, other))
        return complain(op, ring, "stores a tile into", other, "of which this one is not committed");
    state.stored[ring].push_back(op);
    for (Operation *user : ring.getUsers())
      if (auto stash = dyn_cast<StashOp>(user))
        state.overwritten[stash.getStash()] = op;
    return success();
  }

  /// The first row and the number of rows that a store writes; nullopt if it writes all rows of the tile.
  static std::optional<std::pair<int64_t, int64_t>> rowsOf(Operation *op) {
    auto store = dyn_cast<ProducerStoreOp>(op);
    if (!store || !store.getFirst())
      return std::nullopt;
    auto operand = dyn_cast<RegisterOperandType>(store.getOperand().getType());
    return std::pair(int64_t(*store.getFirst()),
                     int64_t(operand ? operand.getRows() : cast<FragType>(store.getOperand().getType()).getRows()));
  }
  /// Do two stores overlap?
  static bool storeSameRows(Operation *op, Operation *other) {
    auto a = rowsOf(op), b = rowsOf(other);
    return !a || !b || (a->first < b->first + b->second && b->first < a->first + a->second);
  }

  LogicalResult producerCommit(ProducerCommitOp op, State &state) {
    SmallVector<Operation *, 2> stores = state.stored.lookup(op.getRing());
    if (!state.stored.erase(op.getRing()))
      return op.emitOpError("commits a ring into which nothing was stored");
    if (auto tile = dyn_cast<SharedType>(op.getRing().getType().getTile()); tile && rowsOf(stores.front())) {
      int64_t rows = 0; // no two stores overlap
      for (Operation *store : stores)
        if (int64_t first = rowsOf(store)->first; first < tile.getRows())
          rows += std::min<int64_t>(rowsOf(store)->second, tile.getRows() - first);
      if (rows < tile.getRows())
        return op.emitOpError("commits a tile of which ") << rows << " of " << tile.getRows() << " rows were stored";
    }
    return success();
  }

  /// Returns `tile` if nothing in flight reads it.
  FailureOr<Value> unread(Operation *op, Value ring, Value tile, State &state) {
    for (auto &[other, flight] : state.into)
      if (llvm::is_contained(flight.reads, tile))
        return complain(op, ring, "releases", flight.op, "while this is in flight and reads it");
    return tile;
  }

  /// The same for the ring's current tile.
  FailureOr<Value> toRelease(Operation *op, Value ring, State &state) {
    auto it = state.waited.find(ring);
    if (it == state.waited.end())
      return op->emitOpError("releases a ring without a current tile");
    return unread(op, ring, it->second.getTile(), state);
  }

  LogicalResult releasePassed(ConsumerReleaseOp op, State &state) {
    auto it = state.advanced.find(op.getRing());
    if (it == state.advanced.end()) {
      if (op.getWhen())
        return success();
      return op.emitOpError("releases the previous tile of a ring that was not advanced");
    }
    FailureOr<Value> tile = unread(op, op.getRing(), it->second.getTile(), state);
    if (failed(tile))
      return failure();
    state.advanced.erase(it);
    state.released[*tile] = op.getRing();
    return success();
  }

  LogicalResult release(ConsumerReleaseOp op, State &state) {
    if (op.getPassed())
      return releasePassed(op, state);
    if (op.getUnless())
      return releaseEarly(op, state);
    FailureOr<Value> tile = toRelease(op, op.getRing(), state);
    if (failed(tile))
      return failure();
    state.waited.erase(op.getRing());
    state.released[*tile] = op.getRing();
    llvm::erase(state.releasedEarly, *tile);
    return success();
  }

  LogicalResult releaseEarly(ConsumerReleaseOp op, State &state) {
    FailureOr<Value> tile = toRelease(op, op.getRing(), state);
    if (failed(tile))
      return failure();
    if (state.released.contains(*tile))
      return op.emitOpError("releases a tile that is released");
    state.released[*tile] = op.getRing();
    state.releasedEarly.push_back(*tile);
    return success();
  }

  LogicalResult checkRole(Region &region, Role role, StringRef name) {
    WalkResult checked = region.walk([&](TileOpInterface op) {
      if (op.getRole() == Role::any || op.getRole() == role)
        return WalkResult::advance();
      op->emitError("expected an op that is run by the ") << name << ", got: " << op->getName();
      return WalkResult::interrupt();
    });
    return failure(checked.wasInterrupted());
  }

  /// Moves facts about tokens to their new names across the edge of a region.
  void rename(ValueRange from, ValueRange to, State &state) {
    SmallVector<Value> places;
    for (auto [token, other] : llvm::zip(from, to)) {
      state.nothing.erase(other);
      if (state.nothing.contains(token))
        state.nothing.insert(other);
      auto it = state.place.find(token);
      places.push_back(it == state.place.end() ? Value() : it->second);
      if (it != state.place.end())
        state.place.erase(it);
    }
    for (auto [token, place] : llvm::zip(to, places))
      if (place)
        state.place[token] = place;
  }

  LogicalResult loop(Block &body, ValueRange init, ValueRange args, ValueRange yielded, ValueRange results,
                     State &state) {
    rename(init, args, state);
    for (int run = 0; run < 2; ++run) {
      for (Value tile : state.releasedEarly) // the loop has another step, so these are not released
        state.released.erase(tile);
      state.releasedEarly.clear();
      if (failed(check(body, state)))
        return failure();
      rename(yielded, run == 0 ? args : results, state);
    }
    return success();
  }

  LogicalResult visit(Operation *op, State &state) {
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](WaitOp w) { return wait(op, w.getTokens(), state); })
        .Case([&](WaitFiniteOp w) {
          LogicalResult result = failure(failed(wait(op, w.getTokens(), state)) || failed(access(op, state)));
          state.readers.clear(); // all threads have the result, so all have finished reading
          return result;
        })
        .Case([&](BarrierOp barrier) {
          if (!barrier.getWarp())
            state.readers.clear();
          return success();
        })
        .Case([&](BarrierAndOp) {
          state.readers.clear();
          return success();
        })
        .Case([&](NullProductOp o) {
          state.nothing.insert(o.getToken());
          return success();
        })
        .Case([&](ProducerStoreOp o) {
          return failure(failed(producerStore(op, o.getRing(), state)) || failed(access(op, state)));
        })
        .Case([&](ProducerCommitOp o) { return producerCommit(o, state); })
        .Case([&](StashOp o) {
          state.overwritten.erase(o.getStash());
          return success();
        })
        .Case([&](ConsumerAdvanceOp o) { return consumerAdvance(o, state); })
        .Case([&](ConsumerWaitOp o) { return consumerWait(o, state); })
        .Case([&](ConsumerReleaseOp o) { return release(o, state); })
        .Case([&](RolesOp roles) -> LogicalResult {
          const std::tuple<Region *, Role, StringRef> all[] = {{&roles.getProducer(), Role::producer, "producer"},
                                                               {&roles.getConsumer(), Role::compute, "consumers"},
                                                               {&roles.getDqMma(), Role::compute, "dQ MMA warpgroup"},
                                                               {&roles.getDqStore(), Role::dq_store, "dQ store warps"}};
          for (auto [region, role, name] : all) {
            State own;
            if (!region->empty() && (failed(checkRole(*region, role, name)) || failed(check(region->front(), own)) ||
                                     failed(checkDone(own))))
              return failure();
          }
          return success();
        })
        .Case([&](KvLoopOp l) {
          return loop(l.getBody().front(), l.getCarried(), l.getBody().getArguments().drop_front(3),
                      l.getBody().front().getTerminator()->getOperands(), l.getResults(), state);
        })
        .Case([&](scf::ForOp l) {
          return loop(*l.getBody(), l.getInitArgs(), l.getRegionIterArgs(), l.getYieldedValues(), l.getResults(),
                      state);
        })
        .Case([&](scf::IfOp branch) -> LogicalResult {
          State other = state;
          if (failed(check(branch.getThenRegion().front(), state)))
            return failure();
          if (!branch.getElseRegion().empty() && failed(check(branch.getElseRegion().front(), other)))
            return failure();
          auto leavesAlike = [](const State &one, const State &two) {
            return llvm::all_of(one.waited,
                                [&](auto &entry) {
                                  return ConsumerWaitOp(entry.second).getCondition() ||
                                         two.waited.contains(entry.first);
                                }) &&
                   llvm::all_of(one.advanced, [&](auto &entry) { return two.advanced.contains(entry.first); });
          };
          if (!leavesAlike(state, other) || !leavesAlike(other, state))
            return branch.emitOpError("waits for or releases a ring's tile in one branch and not in the other");
          // A fact of either path is taken as a fact after both. (A warp whose rows skip a step stores nothing.)
          state.into.insert_range(other.into);
          state.place.insert_range(other.place);
          state.readers.insert_range(other.readers);
          state.stored.insert_range(other.stored);
          state.overwritten.insert_range(other.overwritten);
          state.released.insert_range(other.released);
          llvm::append_range(state.releasedEarly, other.releasedEarly);
          return success();
        })
        .Default([&](Operation *) { return other(op, state); });
  }
};

struct VerifyAsyncPass : attn::tile::impl::VerifyAsyncBase<VerifyAsyncPass> {
  using Base::Base;

  void runOnOperation() final {
    KernelOp kernel = getOperation();
    State state;
    Checker checker;
    if (failed(checker.check(kernel.getBody().front(), state)) || failed(checker.checkDone(state)) ||
        failed(checker.checkRings(kernel)))
      signalPassFailure();
  }
};
} // namespace
