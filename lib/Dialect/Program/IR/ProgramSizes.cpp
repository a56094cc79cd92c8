// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names and sizes of a program: each is known where it is named, and what all ranks have to agree on names none that
// differ.
//
#include "Verifier.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace attn::program;
using attn::rt::Extent;

LogicalResult attn::program::checkNames(DefOp program) {
  llvm::StringSet<> names;
  WalkResult walked = program.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    StringRef name = isa<TensorOp>(op)   ? cast<TensorOp>(op).getName()
                     : isa<BufferOp>(op) ? cast<BufferOp>(op).getName()
                                         : StringRef();
    if (!name.empty() && !names.insert(name).second) // C1
      return op->emitOpError("expected names of tensors and buffers that are distinct, got: `") << name << "` twice";
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

namespace {
class Sizes {
public:
  explicit Sizes(DefOp program) : program(program) {
    for (StringRef name : {"multiprocessors", "rank", "ranks"})
      known.insert(name);
    llvm::StringSet<> before; // sizes that are computed, to which tensors behind them are held
    auto learn = [&](StringRef name) {
      if (!name.empty() && !before.contains(name))
        known.insert(name);
    };
    for (Operation &op : program.getBody().front()) {
      if (auto size = dyn_cast<SizeOp>(op))
        before.insert(size.getName());
      auto tensor = dyn_cast<TensorOp>(op);
      if (!tensor)
        continue;
      if (tensor.getLead() != Lead::none)
        learn(sizeOfLead(tensor));
      for (auto extent : tensor.getExtents().getAsRange<ExtentAttr>())
        learn(extent.getExtent().definedSize());
    }
    for (StringRef name : {"rank", "multiprocessors"})
      differing.insert(name), unequal.insert(name);
  }

  LogicalResult check() { return check(program.getBody()); }

private:
  LogicalResult check(Region &body) {
    for (Operation &op : body.front())
      if (failed(check(&op)))
        return failure();
    return success();
  }

  LogicalResult check(Operation *op) {
    if (auto size = dyn_cast<SizeOp>(op))
      return add(size);
    if (auto table = dyn_cast<TableOp>(op))
      return add(table);
    if (auto tensor = dyn_cast<TensorOp>(op))
      return check(op, tensor.getExtents());
    if (auto buffer = dyn_cast<BufferOp>(op))
      return check(buffer);
    if (auto launch = dyn_cast<LaunchOp>(op))
      return check(launch);
    if (auto exchange = dyn_cast<ExchangeOp>(op))
      return check(exchange);
    if (isa<WaitOp>(op))
      return checkOutsideWhen(op);
    if (auto repeat = dyn_cast<RepeatOp>(op))
      return check(repeat);
    if (auto when = dyn_cast<WhenOp>(op))
      return failure(failed(check(op, when.getCondition())) || failed(check(when.getBody())));
    if (isa<ClearOp, YieldOp>(op))
      return success();
    return op->emitOpError("expected tensors, tables, sizes, buffers and steps in a program"); // C1
  }

  LogicalResult check(Operation *op, ExtentAttr extent) { // C2
    std::vector<std::string> names, looked;
    extent.getExtent().collectSymbols(names);
    extent.getExtent().collectTables(looked);
    for (const std::string &name : names)
      if (!known.contains(name))
        return op->emitOpError("expected sizes that tensors have or that are computed before it, got: `")
               << name << "`" << (tables.contains(name) ? ", a table" : "");
    for (const std::string &name : looked)
      if (!tables.contains(name))
        return op->emitOpError("expected tables that are given before it, got: `")
               << name << "`" << (known.contains(name) ? ", a size" : "");
    return success();
  }

  LogicalResult check(Operation *op, ArrayAttr extents) {
    for (auto extent : extents.getAsRange<ExtentAttr>())
      if (failed(check(op, extent)))
        return failure();
    return success();
  }

  LogicalResult add(SizeOp size) {
    if (failed(check(size, size.getValue())))
      return failure();
    if (!computed.insert(size.getName()).second)
      return size.emitOpError("expected each size to be computed once, got: `") << size.getName() << "` again";
    if (failed(checkDistinct(size, size.getName(),
                             known.contains(size.getName()) || tables.contains(size.getName()) ||
                                 variables.contains(size.getName()))))
      return failure();
    if (differs(size.getValue()))
      differing.insert(size.getName());
    if (isUnequal(size.getValue().getExtent()))
      unequal.insert(size.getName());
    known.insert(size.getName());
    bounds.add(size.getName(), size.getValue().getExtent());
    return success();
  }

  LogicalResult add(TableOp table) {
    if (failed(check(table, table.getLength())) ||
        failed(checkDistinct(table, table.getName(),
                             known.contains(table.getName()) || variables.contains(table.getName()))))
      return failure();
    return checkDistinct(table, table.getName(), !tables.insert(table.getName()).second);
  }

  static LogicalResult checkDistinct(Operation *op, StringRef name, bool isTaken) { // C1
    if (!isTaken)
      return success();
    return op->emitOpError("expected names of sizes, tables and variables that are distinct, got: `")
           << name << "` twice";
  }

  LogicalResult check(BufferOp buffer) {
    for (auto extent : buffer.getExtents().getAsRange<ExtentAttr>()) {
      std::vector<std::string> names;
      extent.getExtent().collectSymbols(names);
      for (const std::string &name : names)
        if (variables.contains(name)) // C2
          return buffer.emitOpError("expected extents that are equal in all iterations, got: `") << name << "`";
    }
    return check(buffer, buffer.getExtents());
  }

  LogicalResult check(LaunchOp launch) {
    if (failed(check(launch, launch.getBlocks())))
      return failure();
    for (auto argument : launch.getArguments().getAsRange<ArgumentAttr>())
      if (argument.getExtent() && failed(check(launch, argument.getExtent())))
        return failure();
    for (auto [tensor, argument, number] : accessesOf(launch))
      if (failed(checkRows(launch, tensor, argument.getPart(), argument.getParts())))
        return failure();
    return success();
  }

  /// Rows of iterations are those of a repeat around the op. Where it runs no time, there are none.
  LogicalResult checkRows(Operation *op, Value tensor, ExtentAttr part, ExtentAttr parts) { // C12
    if (!part || part.getExtent().constant())
      return success();
    if (failed(check(op, part)) || failed(check(op, parts)))
      return failure();
    if (llvm::none_of(repeatsAround(op), [&](RepeatOp repeat) {
          return repeat.getName() == part.getText() && repeat.getCount() == parts;
        }))
      return op->emitOpError("expected a number, or the variable of a repeat around it that runs ")
             << parts.getText() << " times, got: rows(" << part.getText() << " of " << parts.getText() << ")";
    TensorInfo info = TensorInfo::of(tensor);
    if (bounds.least(parts.getExtent()) >= 1 || llvm::any_of(info.extents.getAsRange<ExtentAttr>(), [&](ExtentAttr e) {
          return bounds.isEmptyWith(e.getExtent(), parts.getExtent());
        }))
      return success();
    return op->emitOpError("expected a repeat that runs once or more, or an extent of `")
           << info.name.getValue() << "` that is 0 where it does not run, got: a repeat that runs " << parts.getText()
           << " times";
  }

  LogicalResult checkOutsideWhen(Operation *op) { // C11
    for (Operation *parent = op->getParentOp(); !isa<DefOp>(parent); parent = parent->getParentOp())
      if (isa<WhenOp>(parent))
        return op->emitOpError("expected exchanges and waits that all ranks run, got: one in a `program.when`");
    return success();
  }

  /// Does it name what ranks may differ in?
  bool differs(ExtentAttr extent) const {
    std::vector<std::string> names, looked;
    extent.getExtent().collectSymbols(names);
    extent.getExtent().collectTables(looked);
    return !looked.empty() || llvm::any_of(names, [&](const std::string &name) { return differing.contains(name); });
  }
  /// The same, but by numbers of tables.
  bool isUnequal(const Extent &extent) const {
    if (extent.op() == Extent::Op::Lookup)
      return false;
    return unequal.contains(extent.name()) ||
           llvm::any_of(extent.operands(), [&](const Extent &operand) { return isUnequal(operand); });
  }

  LogicalResult check(ExchangeOp exchange) {
    for (ExtentAttr extent : {exchange.getOffset(), exchange.getSentAttr(), exchange.getReceivedAttr()})
      if (extent && failed(check(exchange, extent)))
        return failure();
    if (failed(checkRows(exchange, exchange.getDestination(), exchange.getPartAttr(), exchange.getPartsAttr())) ||
        failed(checkOutsideWhen(exchange)))
      return failure();
    if (differs(exchange.getOffset())) // C11
      return exchange.emitOpError("expected an offset that is equal on all ranks, got: ")
             << exchange.getOffset().getText();
    ExtentAttr sent = exchange.getSentAttr(), received = exchange.getReceivedAttr();
    if (sent && sent != received && !differs(sent) && !differs(received))
      return exchange.emitOpError(
                 "expected as many rows received as sent, since neither goes by the rank, got: rows(send ")
             << sent.getText() << ", receive " << received.getText() << ")";
    for (ExtentAttr rows : {sent, received})
      if (rows && isUnequal(rows.getExtent()))
        return exchange.emitOpError("expected rows that name `rank` in the index of a table alone, got: ")
               << rows.getText();
    TensorInfo source = TensorInfo::of(exchange.getSource()); // whose extents the destination has, too
    for (auto [axis, extent] : llvm::enumerate(source.extents.getAsRange<ExtentAttr>()))
      if (differs(extent) && (axis > 0 || !sent))
        return exchange.emitOpError("expected extents that are equal on all ranks, or `rows(send A, receive B)` of the "
                                    "first, got: `")
               << source.name.getValue() << "` with " << extent.getText();
    for (RepeatOp repeat : repeatsAround(exchange))
      if (differs(repeat.getCount()))
        return repeat.emitOpError("expected a count that is equal on all ranks, as there are exchanges, got: ")
               << repeat.getCount().getText();
    return success();
  }

  LogicalResult check(RepeatOp repeat) {
    if (failed(check(repeat, repeat.getCount())) ||
        failed(checkDistinct(repeat, repeat.getName(),
                             known.contains(repeat.getName()) || tables.contains(repeat.getName()) ||
                                 !variables.insert(repeat.getName()).second)))
      return failure();
    known.insert(repeat.getName());
    LogicalResult checked = check(repeat.getBody());
    known.erase(repeat.getName());
    return checked;
  }

  DefOp program;
  llvm::StringSet<> known, computed, tables, variables;
  llvm::StringSet<> differing; ///< sizes that may differ between ranks
  llvm::StringSet<> unequal;   ///< those of them that do so without a table
  Bounds bounds;
};
} // namespace

LogicalResult attn::program::checkSizes(DefOp program) { return Sizes(program).check(); }
