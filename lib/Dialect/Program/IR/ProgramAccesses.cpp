// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who reads and writes what, on every path. The program is run over what is known of each tensor and buffer instead of
// their elements: a repeat until its states (which memory each carried value is, and what is known of it) come again, a
// when by what holds whether or not it runs.
//
#include "Contents.h"
#include "Verifier.h"

using namespace mlir;
using namespace attn::program;

namespace {
class Accesses {
public:
  explicit Accesses(DefOp program) : program(program) {
    program.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<TensorOp, BufferOp>(op))
        numbers[op->getResult(0)] = memory.size(), memory.push_back(op->getResult(0));
    });
    int values = 0;
    program.walk<WalkOrder::PreOrder>([&](RepeatOp repeat) {
      for (Value value : repeat.getBody().getArguments())
        numbers[value] = values++;
      for (Value value : repeat.getLast())
        numbers[value] = values++;
    });
    start.carried.assign(values, -1);
    start.contents.resize(memory.size());
    for (auto [value, own] : llvm::zip_equal(memory, start.contents))
      own.isWritten = isGiven(value);
  }

  LogicalResult check() {
    States states = {start};
    if (failed(run(program.getBody().front(), states)))
      return failure();
    for (const State &state : states)
      for (const Contents &own : state.contents)
        if (!own.receiving.empty())
          return refuseUnwaited(own.receiving[0], "the program");
    for (const State &state : states)
      for (auto [value, own] : llvm::zip_equal(memory, state.contents)) {
        TensorInfo info = TensorInfo::of(value);
        if (info.role == Role::result && !own.isWritten) // C5
          return value.getDefiningOp()->emitOpError("expected every row of the result `")
                 << info.name.getValue() << "` to be written, got: " << stateOf(own);
      }
    WalkResult walked = program.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
      if (auto buffer = dyn_cast<BufferOp>(op); buffer && !everRead.contains(buffer.getTensor())) // C6
        return op->emitOpError("expected a launch that reads the buffer `") << buffer.getName() << "`, got: none";
      if (auto wait = dyn_cast<WaitOp>(op); wait && !waited.contains(op)) // C9
        return op->emitOpError("expected an exchange into `")
               << TensorInfo::of(wait.getDestination()).name.getValue() << "` before the wait, got: none";
      return WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }

private:
  static bool isGiven(Value value) {
    std::optional<Role> role = TensorInfo::of(value).role;
    return role && *role != Role::result;
  }
  StringRef nameOf(int number) const { return TensorInfo::of(memory[number]).name.getValue(); }
  /// The tensor or buffer that a value is.
  int numberOf(const State &state, Value value) const {
    int number = numbers.find(value)->second;
    return Carried::of(value) ? state.carried[number] : number;
  }

  static std::string stateOf(const Contents &own) {
    if (!own.writer)
      return "no launch that writes it";
    if (own.repeat || own.isIncomplete)
      return "rows that some iterations write";
    if (!own.parts)
      return "no launch that writes it on every path";
    std::string missing;
    int64_t parts = own.parts.getExtent().constant().value_or(0);
    for (int64_t part = 0; part < parts; ++part)
      if (!(own.classes >> part & 1))
        missing += (missing.empty() ? "" : ", ") + std::to_string(part);
    return "no launch that writes rows(" + missing + " of " + std::to_string(parts) + ")";
  }

  //===------------------------------------------------------------------===//
  // Steps in a row
  //===------------------------------------------------------------------===//

  LogicalResult run(Block &body, States &states) {
    constexpr int64_t mostSteps = 1 << 18;
    for (Operation &op : body) {
      States later;
      for (State &state : states) {
        if (++steps > mostSteps) // C13
          return program.emitOpError("expected repeats that are checked in ") << mostSteps << " steps, got: more";
        for (Value value : op.getOperands())
          if (numberOf(state, value) < 0)
            return op.emitOpError("expected values that are defined before it, got: a later one");
        if (auto repeat = dyn_cast<RepeatOp>(op)) {
          if (failed(run(repeat, state, later)))
            return failure();
        } else if (auto when = dyn_cast<WhenOp>(op)) {
          if (failed(run(when, state, later)))
            return failure();
        } else {
          if (failed(run(&op, state)))
            return failure();
          add(later, std::move(state));
        }
        if (later.size() > mostStates) // C13
          return op.emitOpError("expected at most ") << mostStates << " states of repeats, got: more";
      }
      states = std::move(later);
    }
    return success();
  }

  LogicalResult run(Operation *op, State &state) {
    if (isa<BufferOp>(op))
      state.contents[numbers.find(op->getResult(0))->second] = Contents();
    if (auto clear = dyn_cast<ClearOp>(op))
      return write(op, state, numberOf(state, clear.getTensor()), {}, {});
    if (auto launch = dyn_cast<LaunchOp>(op))
      return run(launch, state);
    if (auto exchange = dyn_cast<ExchangeOp>(op))
      return run(exchange, state);
    if (auto wait = dyn_cast<WaitOp>(op))
      run(wait, state);
    return success();
  }

  LogicalResult run(LaunchOp launch, State &state) {
    SmallVector<TensorAccess> accesses = accessesOf(launch);
    for (auto [tensor, argument, number] : accesses) { // what a launch reads was there before it
      int own = numberOf(state, tensor);
      if (argument.getEffect() == Effect::update && isGiven(memory[own]))
        return refuseInput(launch, own);
      if (argument.reads() && failed(read(launch, state, own)))
        return failure();
      if (argument.getEffect() == Effect::update && failed(checkUnused(launch, state, own)))
        return failure();
    }
    for (auto [tensor, argument, number] : accesses) {
      int own = numberOf(state, tensor);
      auto isOwn = [&, number = number](const TensorAccess &other) {
        return other.number != number && other.argument.getKind() != ArgumentKind::stride &&
               numberOf(state, other.tensor) == own;
      };
      if (argument.writes() && llvm::any_of(accesses, isOwn)) // C6
        return launch.emitOpError("expected one argument for `")
               << nameOf(own) << "`, which the launch writes, got: several";
      if (argument.getEffect() == Effect::scratch && failed(scratch(launch, state, own)))
        return failure();
      if (argument.getEffect() == Effect::write &&
          failed(write(launch, state, own, argument.getPart(), argument.getParts())))
        return failure();
    }
    return success();
  }

  LogicalResult run(ExchangeOp exchange, State &state) {
    int source = numberOf(state, exchange.getSource()), destination = numberOf(state, exchange.getDestination());
    if (source == destination)
      return exchange.emitOpError("expected a source and a destination that differ, got: `")
             << nameOf(source) << "` twice";
    for (int number : {source, destination}) // C1 of an exchange
      if (auto tensor = memory[number].getDefiningOp<TensorOp>();
          tensor && (tensor.getLead() != Lead::none || (number == destination && !tensor.getStrided().empty())))
        return exchange.emitOpError("expected a source and a destination without leading dimensions, and a destination "
                                    "without strided axes, got: `")
               << nameOf(number) << "`";
    if (failed(read(exchange, state, source)) ||
        failed(receive(exchange, state, destination, exchange.getPartAttr(), exchange.getPartsAttr())))
      return failure();
    std::pair<Operation *, int> sent(exchange, destination);
    if (auto &sending = state.contents[source].sending; !llvm::is_contained(sending, sent))
      sending.push_back(sent);
    return success();
  }

  void run(WaitOp wait, State &state) {
    int destination = numberOf(state, wait.getDestination());
    Contents &own = state.contents[destination];
    if (!own.receiving.empty())
      waited.insert(wait);
    own.receiving.clear();
    for (Contents &other : state.contents)
      llvm::erase_if(other.sending, [&](auto sent) { return sent.second == destination; });
  }

  //===------------------------------------------------------------------===//
  // Bodies
  //===------------------------------------------------------------------===//

  /// Runs a body, whose buffers end with it.
  LogicalResult runBody(Block &body, States &states) {
    if (failed(run(body, states)))
      return failure();
    for (State &state : states)
      for (Operation &op : body) {
        if (auto buffer = dyn_cast<BufferOp>(op)) {
          Contents &own = state.contents[numbers.find(buffer.getTensor())->second];
          if (!own.receiving.empty() || !own.sending.empty()) // C9
            return refuseUnwaited(own.receiving.empty() ? own.sending[0].first : own.receiving[0],
                                  "the body that has `" + buffer.getName() + "`");
        }
      }
    return success();
  }
  /// Nothing of a body is left.
  void leave(Block &body, State &state) {
    for (Operation &op : body) {
      if (auto buffer = dyn_cast<BufferOp>(op))
        state.contents[numbers.find(buffer.getTensor())->second] = Contents();
      if (auto repeat = dyn_cast<RepeatOp>(op))
        for (Value value : repeat.getLast())
          state.carried[numbers.find(value)->second] = -1;
    }
  }

  LogicalResult run(WhenOp when, const State &state, States &later) {
    States states = {state};
    if (failed(runBody(when.getBody().front(), states)))
      return failure();
    for (State &ran : states) {
      leave(when.getBody().front(), ran);
      for (auto [own, skipped] : llvm::zip_equal(ran.contents, state.contents))
        own.join(skipped);
      add(later, std::move(ran));
    }
    return success();
  }

  /// One iteration from each of these states.
  LogicalResult iterate(RepeatOp repeat, States &states) {
    Block &body = repeat.getBody().front();
    if (failed(runBody(body, states)))
      return failure();
    States after;
    for (State &state : states) {
      SmallVector<int> next;
      for (Value value : body.getTerminator()->getOperands()) {
        int number = next.emplace_back(numberOf(state, value));
        if (repeat.getBody().isAncestor(memory[number].getParentRegion())) // C3 of a repeat
          return body.getTerminator()->emitOpError("expected memory from outside the body to be yielded, got: `")
                 << nameOf(number) << "`, which is new in each iteration";
      }
      leave(body, state);
      for (auto [argument, number] : llvm::zip_equal(body.getArguments(), next))
        state.carried[numbers.find(argument)->second] = number;
      for (Contents &own : state.contents)
        if (own.repeat == repeat)
          own.isIncomplete |= !own.classes, own.classes = own.maybe = 0;
      if (!llvm::is_contained(state.begun, repeat))
        state.begun.push_back(repeat);
      add(after, std::move(state));
    }
    states = std::move(after);
    return success();
  }

  LogicalResult run(RepeatOp repeat, const State &before, States &later) {
    State first = before;
    for (auto [argument, initial] : llvm::zip_equal(repeat.getBody().getArguments(), repeat.getInitial()))
      first.carried[numbers.find(argument)->second] = numberOf(before, initial);
    constexpr int64_t few = 8; // iterations that are run one by one
    std::optional<int64_t> count = repeat.getCount().getExtent().constant();
    States ends, states = {first};
    if (count && *count > 0 && *count <= few) {
      for (int64_t i = 0; i < *count; ++i)
        if (failed(iterate(repeat, states)))
          return failure();
      ends = std::move(states);
    } else {
      for (States seen = states; !states.empty();) {
        if (failed(iterate(repeat, states)))
          return failure();
        States fresh;
        for (const State &state : states) {
          add(ends, state);
          if (!llvm::is_contained(seen, state))
            seen.push_back(state), fresh.push_back(state);
        }
        if (seen.size() > mostStates) // C13
          return repeat.emitOpError("expected at most ") << mostStates << " states of repeats, got: more";
        states = std::move(fresh);
      }
    }
    bool mayRunNever = !count || *count <= 0;
    if (mayRunNever && count)
      ends.clear();
    for (State &end : ends)
      finish(repeat, end, later);
    if (mayRunNever) {
      // Without an iteration there are no rows that iterations would have written.
      for (size_t i = 0; i < first.contents.size(); ++i)
        if (!ends.empty() && llvm::all_of(ends, [&](const State &end) { return isByIterations(repeat, end, i); }))
          first.contents[i].becomeEmpty(ends[0].contents[i]);
      finish(repeat, first, later);
    }
    return success();
  }

  static bool isByIterations(RepeatOp repeat, const State &end, size_t i) {
    return end.contents[i].repeat == repeat && !end.contents[i].isIncomplete;
  }

  void finish(RepeatOp repeat, State end, States &later) {
    for (auto [argument, result] : llvm::zip_equal(repeat.getBody().getArguments(), repeat.getLast())) {
      int &carried = end.carried[numbers.find(argument)->second];
      end.carried[numbers.find(result)->second] = carried, carried = -1;
    }
    for (Contents &own : end.contents)
      if (own.repeat == repeat)
        own.isWritten = !own.isIncomplete, own.forgetClasses();
    llvm::erase(end.begun, repeat);
    add(later, std::move(end));
  }

  //===------------------------------------------------------------------===//
  // Accesses
  //===------------------------------------------------------------------===//

  LogicalResult refuseUnwaited(Operation *exchange, const Twine &end) { // C9
    return exchange->emitOpError("expected a wait for this exchange before the end of ") << end << ", got: none";
  }

  LogicalResult refuseInput(Operation *op, int number) { // C5
    return op->emitOpError("expected operands and arrays to be read alone, got: ")
           << (isa<ExchangeOp>(op) ? "an exchange into" : "a launch that writes") << " `" << nameOf(number) << "`";
  }

  /// A write of memory, or rows received into it: nothing there is in flight.
  LogicalResult checkUnused(Operation *op, const State &state, int number) { // C8
    const Contents &own = state.contents[number];
    if (own.receiving.empty() && own.sending.empty())
      return success();
    bool receives = !own.receiving.empty();
    InFlightDiagnostic error = op->emitOpError("expected a wait for `")
                               << nameOf(receives ? number : own.sending[0].second) << "` before `" << nameOf(number)
                               << "` is written, got: rows that are still " << (receives ? "received" : "sent");
    error.attachNote((receives ? own.receiving[0] : own.sending[0].first)->getLoc()) << "exchanged here";
    return error;
  }

  LogicalResult read(Operation *op, State &state, int number) {
    Contents &own = state.contents[number];
    if (!own.receiving.empty()) { // C8
      InFlightDiagnostic error = op->emitOpError("expected a wait for `")
                                 << nameOf(number) << "` before it is read, got: rows that are still received";
      error.attachNote(own.receiving[0]->getLoc()) << "exchanged here";
      return error;
    }
    if (!own.isWritten) // C3
      return op->emitOpError("expected `")
             << nameOf(number) << "` to be written before it is read, got: " << stateOf(own);
    own.isUnread = false;
    everRead.insert(memory[number]);
    return success();
  }

  LogicalResult scratch(LaunchOp launch, State &state, int number) {
    if (TensorInfo info = TensorInfo::of(memory[number]); info.role)
      return launch.emitOpError("expected a buffer as scratch, got: `") << info.name.getValue() << "`";
    if (failed(checkUnused(launch, state, number)) || failed(checkRead(launch, state, number)))
      return failure();
    state.contents[number] = Contents();
    everRead.insert(memory[number]);
    return success();
  }

  /// What was received there has been read.
  LogicalResult checkRead(Operation *op, const State &state, int number) { // C10
    const Contents &own = state.contents[number];
    if (!own.writer || !own.isUnread || !(own.isReceived || isa<ExchangeOp>(op)))
      return success();
    InFlightDiagnostic error = op->emitOpError("expected `")
                               << nameOf(number)
                               << "` to be read before other rows come there, got: no step that reads it";
    error.attachNote(own.writer->getLoc()) << "written here";
    return error;
  }

  /// Rows that are not all written yet are classes of launches or blocks of exchanges.
  LogicalResult checkKind(Operation *op, const State &state, int number, ExtentAttr parts) { // C4
    const Contents &own = state.contents[number];
    if (!own.parts || !parts || !own.isUnread || own.hasBlocks() == isa<ExchangeOp>(op))
      return success();
    InFlightDiagnostic error = op->emitOpError("expected rows of `")
                               << nameOf(number)
                               << "` to be classes that launches write or blocks that are received, got: both";
    error.attachNote(own.writer->getLoc()) << "written here, too";
    return error;
  }

  /// The repeat around an op whose iterations have these rows.
  static Operation *repeatOf(Operation *op, ExtentAttr part) {
    if (part && !part.getExtent().constant())
      for (RepeatOp repeat : repeatsAround(op))
        if (repeat.getName() == part.getText())
          return repeat;
    return nullptr;
  }
  static uint64_t classOf(ExtentAttr part) { return part ? uint64_t(1) << part.getExtent().constant().value_or(0) : 0; }

  /// Are these rows beside those that are written there?
  static bool isBeside(Operation *op, const Contents &own, ExtentAttr part, ExtentAttr parts) {
    return own.writer && parts && own.parts == parts && own.repeat == repeatOf(op, part) &&
           own.hasBlocks() == isa<ExchangeOp>(op) && !(own.maybe & classOf(part));
  }

  static void setWritten(Operation *op, const State &state, Contents &own, ExtentAttr part, ExtentAttr parts) {
    Operation *repeat = repeatOf(op, part);
    if (own.repeat != repeat) // no iteration before this one has written its rows
      own.isIncomplete = llvm::is_contained(state.begun, repeat);
    own.writer = op, own.parts = parts, own.isUnread = true;
    own.isReceived = isa<ExchangeOp>(op);
    own.repeat = repeat;
    own.classes |= classOf(part), own.maybe |= classOf(part);
    int64_t count = parts ? parts.getExtent().constant().value_or(0) : 0;
    own.isWritten = !parts || (!own.repeat && llvm::popcount(own.classes) == count);
  }

  LogicalResult write(Operation *op, State &state, int number, ExtentAttr part, ExtentAttr parts) {
    if (isGiven(memory[number]))
      return refuseInput(op, number);
    if (failed(checkUnused(op, state, number)))
      return failure();
    Contents &own = state.contents[number];
    if (own.writer && !isBeside(op, own, part, parts)) {
      if (failed(checkKind(op, state, number, parts)) || failed(checkRead(op, state, number)))
        return failure();
      if (!own.isReceived) { // C4
        InFlightDiagnostic error = op->emitOpError("expected each row of `")
                                   << nameOf(number) << "` to be written by one launch (others may update it), got: "
                                   << (own.writer == op ? "one in each iteration" : "two");
        error.attachNote(own.writer->getLoc()) << "written here, too";
        return error;
      }
      own = Contents();
    }
    setWritten(op, state, own, part, parts);
    return success();
  }

  LogicalResult receive(ExchangeOp op, State &state, int number, ExtentAttr part, ExtentAttr parts) {
    if (isGiven(memory[number]))
      return refuseInput(op, number);
    Contents &own = state.contents[number];
    if (!own.sending.empty() || !isBeside(op, own, part, parts)) {
      if (failed(checkUnused(op, state, number)) || failed(checkKind(op, state, number, parts)) ||
          failed(checkRead(op, state, number)))
        return failure();
      own = Contents();
    }
    setWritten(op, state, own, part, parts);
    if (!llvm::is_contained(own.receiving, op.getOperation()))
      own.receiving.push_back(op);
    return success();
  }

  DefOp program;
  int64_t steps = 0;                  ///< that were run
  llvm::DenseMap<Value, int> numbers; ///< of tensors and buffers, and of carried values
  SmallVector<Value> memory;          ///< tensors and buffers
  State start;
  llvm::DenseSet<Value> everRead;
  llvm::DenseSet<Operation *> waited; ///< waits that have an exchange, on some path
};
} // namespace

LogicalResult attn::program::checkAccesses(DefOp program) { return Accesses(program).check(); }
