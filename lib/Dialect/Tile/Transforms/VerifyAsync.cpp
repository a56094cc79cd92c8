// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An abstract run of the kernel. For every place: which token is in flight into
// it, if any, and whether some warp may still be reading it. For every carried
// token: what it stands for. Loops are run twice, which reaches their fixpoint:
// a state is a finite set of facts and the second run starts from all that the
// first one leaves behind. Roles are looked at one by one: what they share are
// rings, and what a role may do with a ring's tile depends on itself alone.
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
/// What is in flight, and since when: `op` started it.
struct Flight {
  Operation *op = nullptr;
  SmallVector<Value, 2> reads; ///< places it reads while it is in flight
};

struct State {
  DenseMap<Value, Flight> into;                     ///< place -> what is in flight into it
  DenseMap<Value, Operation *> readers;             ///< shared place -> who may still be reading it
  DenseMap<Value, Value> place;                     ///< token -> its destination
  DenseSet<Value> nothing;                          ///< tokens of nothing
  DenseMap<Value, ConsumerWaitOp> taken;            ///< ring -> what was taken from it and not yet released
  DenseMap<Value, ConsumerAdvanceOp> passed;        ///< ring -> what was passed and not yet released
  DenseMap<Value, SmallVector<Operation *, 2>> put; ///< ring -> what was put there and not yet published
  DenseMap<Value, Operation *> covered;             ///< what was aside -> what lies there since
  DenseMap<Value, Value> gone;                      ///< tile -> ring, once it is released
  SmallVector<Value> early;                         ///< tiles that are gone unless the loop has more steps
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
    for (auto &[ring, take] : state.taken)
      if (!ConsumerWaitOp(take).getMore()) // which is taken in a further step of a walk, if there is one
        return take->emitOpError("is never followed by a release");
    for (auto &[ring, pass] : state.passed)
      return pass->emitOpError("is never followed by a release");
    for (auto &[ring, put] : state.put)
      return put.front()->emitOpError("is never committed");
    return success();
  }

  /// Both sides of every ring are there.
  LogicalResult checkRings(KernelOp kernel) {
    for (auto place : kernel.getBody().getOps<AllocOp>()) {
      if (!isa<RingType>(place.getType()))
        continue;
      bool filled = false, taken = false;
      for (OpOperand &use : place->getUses()) {
        Access access = accessOf(use);
        filled |= access.writes && !access.reads;
        taken |= isa<ConsumerWaitOp>(use.getOwner());
      }
      if (filled != taken)
        return place.emitOpError("expected a ring with a producer and a consumer, got: one with only a ")
               << (filled ? "producer" : "consumer");
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

  /// Do tiles lie in the same bytes, one after the other (`tile-allocate-shared`)?
  static bool overlap(Value a, Value b) {
    auto one = a.getDefiningOp<AllocOp>(), other = b.getDefiningOp<AllocOp>();
    if (!one || !other || one == other || !one.getOffset() || !other.getOffset())
      return false;
    auto first = dyn_cast<SharedType>(one.getType()), second = dyn_cast<SharedType>(other.getType());
    return first && second && int64_t(*one.getOffset()) < int64_t(*other.getOffset()) + second.getSharedBytes() &&
           int64_t(*other.getOffset()) < int64_t(*one.getOffset()) + first.getSharedBytes();
  }

  /// Is everybody done with the place, and with what else lies in its bytes?
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
    if (state.gone.contains(place))
      return op->emitOpError("reads a tile of a ring that it has released");
    if (auto it = state.covered.find(place); it != state.covered.end()) {
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

  /// All that the op says of places: it is done at once, or in flight until its token is waited for.
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
      if (auto take = place.getDefiningOp<ConsumerWaitOp>(); take && take.getOtherwise())
        flight.reads.push_back(wholeOf(take.getOtherwise()));
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

  /// An op without a meaning of its own here. Its regions may run any number of times.
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

  LogicalResult take(ConsumerWaitOp op, State &state) {
    if (auto it = state.taken.find(op.getRing()); it != state.taken.end() && !it->second.getMore())
      return complain(op, op.getRing(), "waits for a tile of", it->second, "of which this tile is not released");
    if (failed(access(op, state)))
      return failure();
    state.taken[op.getRing()] = op;
    state.gone.erase(op.getTile());
    state.readers.erase(op.getTile()); // of the one before
    return success();
  }

  LogicalResult pass(ConsumerAdvanceOp op, State &state) {
    auto it = state.taken.find(op.getRing());
    if (it == state.taken.end())
      return op.emitOpError("advances a ring without a current tile");
    if (auto other = state.passed.find(op.getRing()); other != state.passed.end())
      return complain(op, op.getRing(), "advances", other->second, "of which this one is not released");
    state.gone[it->second.getTile()] = op.getRing(); // it has another name
    state.gone.erase(op.getTile());
    state.taken.erase(it);
    state.passed[op.getRing()] = op;
    return success();
  }

  LogicalResult put(Operation *op, Value ring, State &state) {
    for (Operation *other : state.put.lookup(ring))
      if (putSameRows(op, other))
        return complain(op, ring, "stores a tile into", other, "of which this one is not committed");
    state.put[ring].push_back(op);
    for (Operation *user : ring.getUsers())
      if (auto aside = dyn_cast<StashOp>(user))
        state.covered[aside.getStash()] = op;
    return success();
  }

  /// Of a put tile the rows from `first` on, as many as a fragment has; of one without, all.
  static std::optional<std::pair<int64_t, int64_t>> rowsOf(Operation *op) {
    auto put = dyn_cast<ProducerStoreOp>(op);
    if (!put || !put.getFirst())
      return std::nullopt;
    auto held = dyn_cast<RegisterOperandType>(put.getOperand().getType());
    return std::pair(int64_t(*put.getFirst()),
                     int64_t(held ? held.getRows() : cast<FragType>(put.getOperand().getType()).getRows()));
  }
  /// Are there rows that both are?
  static bool putSameRows(Operation *op, Operation *other) {
    auto a = rowsOf(op), b = rowsOf(other);
    return !a || !b || (a->first < b->first + b->second && b->first < a->first + a->second);
  }

  LogicalResult publish(ProducerCommitOp op, State &state) {
    SmallVector<Operation *, 2> puts = state.put.lookup(op.getRing());
    if (!state.put.erase(op.getRing()))
      return op.emitOpError("commits a ring into which nothing was stored");
    if (auto tile = dyn_cast<SharedType>(op.getRing().getType().getTile()); tile && rowsOf(puts.front())) {
      int64_t rows = 0; // none is put twice
      for (Operation *put : puts)
        if (int64_t first = rowsOf(put)->first; first < tile.getRows())
          rows += std::min<int64_t>(rowsOf(put)->second, tile.getRows() - first);
      if (rows < tile.getRows())
        return op.emitOpError("commits a tile of which ") << rows << " of " << tile.getRows() << " rows were stored";
    }
    return success();
  }

  /// The tile, if nothing in flight reads it.
  FailureOr<Value> unread(Operation *op, Value ring, Value tile, State &state) {
    for (auto &[other, flight] : state.into)
      if (llvm::is_contained(flight.reads, tile))
        return complain(op, ring, "releases", flight.op, "while this is in flight and reads it");
    return tile;
  }

  /// The same of the tile that is taken from the ring.
  FailureOr<Value> toRelease(Operation *op, Value ring, State &state) {
    auto it = state.taken.find(ring);
    if (it == state.taken.end())
      return op->emitOpError("releases a ring without a current tile");
    return unread(op, ring, it->second.getTile(), state);
  }

  LogicalResult releasePassed(ConsumerReleaseOp op, State &state) {
    auto it = state.passed.find(op.getRing());
    if (it == state.passed.end()) {
      if (op.getWhen())
        return success();
      return op.emitOpError("releases the previous tile of a ring that was not advanced");
    }
    FailureOr<Value> tile = unread(op, op.getRing(), it->second.getTile(), state);
    if (failed(tile))
      return failure();
    state.passed.erase(it);
    state.gone[*tile] = op.getRing();
    return success();
  }

  LogicalResult release(ConsumerReleaseOp op, State &state) {
    if (op.getPassed())
      return releasePassed(op, state);
    if (op.getMore())
      return releaseEarly(op, state);
    FailureOr<Value> tile = toRelease(op, op.getRing(), state);
    if (failed(tile))
      return failure();
    state.taken.erase(op.getRing());
    state.gone[*tile] = op.getRing();
    llvm::erase(state.early, *tile);
    return success();
  }

  LogicalResult releaseEarly(ConsumerReleaseOp op, State &state) {
    FailureOr<Value> tile = toRelease(op, op.getRing(), state);
    if (failed(tile))
      return failure();
    if (state.gone.contains(*tile))
      return op.emitOpError("releases a tile that is released");
    state.gone[*tile] = op.getRing();
    state.early.push_back(*tile);
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

  /// Tokens keep their meaning under another name, across the edge of a region.
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
      for (Value tile : state.early) // there is a step, so it is still there
        state.gone.erase(tile);
      state.early.clear();
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
          state.readers.clear(); // all have the answer, so all have read
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
          return failure(failed(put(op, o.getRing(), state)) || failed(access(op, state)));
        })
        .Case([&](ProducerCommitOp o) { return publish(o, state); })
        .Case([&](StashOp o) {
          state.covered.erase(o.getStash());
          return success();
        })
        .Case([&](ConsumerAdvanceOp o) { return pass(o, state); })
        .Case([&](ConsumerWaitOp o) { return take(o, state); })
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
            return llvm::all_of(one.taken,
                                [&](auto &entry) {
                                  return ConsumerWaitOp(entry.second).getMore() || two.taken.contains(entry.first);
                                }) &&
                   llvm::all_of(one.passed, [&](auto &entry) { return two.passed.contains(entry.first); });
          };
          if (!leavesAlike(state, other) || !leavesAlike(other, state))
            return branch.emitOpError("waits for or releases a ring's tile in one branch and not in the other");
          for (auto &entry : other.into)
            state.into.insert(entry);
          for (auto &entry : other.readers)
            state.readers.insert(entry);
          for (auto &entry : other.gone)
            state.gone.insert(entry);
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
