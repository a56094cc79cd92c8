// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What makes a program sound, op by op; sizes and who reads and writes what are in files of their own.
//
#include "Verifier.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::program;
using attn::rt::Extent;

static LogicalResult verifyElement(Operation *op, Type element) {
  if (element.isBF16() || element.isF16() || element.isF32() || element.isInteger(32))
    return success();
  return op->emitOpError("expected elements of bf16, f16, f32 or i32, got: ") << element;
}

static bool isSizeName(StringRef name) {
  return !name.empty() && !llvm::isDigit(name[0]) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// Is it a name for a size of the program's own?
static LogicalResult verifySizeName(Operation *op, StringRef name) { // C1
  if (isSizeName(name) && !llvm::is_contained({"multiprocessors", "id_rows", "rank", "ranks"}, name))
    return success();
  return op->emitOpError("expected an identifier that is no size of the chip, of ids or of ranks, got: ")
         << StringAttr::get(op->getContext(), name);
}

static LogicalResult verifyExtent(Operation *op, ExtentAttr extent) { // C2
  if (extent.getExtent().constant().value_or(0) >= 0)
    return success();
  return op->emitOpError("expected extents of 0 or more, got: ") << extent.getText();
}

/// The name and extents of a tensor or buffer.
static LogicalResult verifyMemory(Operation *op, StringAttr name, ArrayAttr extents) {
  if (!isSizeName(name)) // C1
    return op->emitOpError("expected an identifier as its name, got: ") << name;
  for (auto extent : extents.getAsRange<ExtentAttr>())
    if (failed(verifyExtent(op, extent)))
      return failure();
  return success();
}

LogicalResult TensorOp::verify() {
  constexpr int64_t mostAxes = 8; // of the C interfaces
  int64_t rank = getExtents().size();
  if (rank > mostAxes)
    return emitOpError("expected at most ") << mostAxes << " axes, got: " << rank;
  for (int64_t axis : getStrided())
    if (axis < 0 || axis >= rank)
      return emitOpError("expected strided axes from 0 to ") << rank - 1 << ", got: " << axis;
  if (llvm::SmallSet<int64_t, 4>(getStrided().begin(), getStrided().end()).size() != getStrided().size())
    return emitOpError("expected each strided axis once, got: ") << getStridedAttr();
  if (failed(verifyMemory(*this, getNameAttr(), getExtents())))
    return failure();
  return verifyElement(*this, getElement());
}

LogicalResult BufferOp::verify() {
  constexpr uint64_t mostPlaces = 1 << 16;
  if (getPlace().value_or(0) > mostPlaces)
    return emitOpError("expected a place from 0 to ") << mostPlaces << ", got: " << getPlaceAttr().getInt();
  if (failed(verifyMemory(*this, getNameAttr(), getExtents())))
    return failure();
  return verifyElement(*this, getElement());
}

LogicalResult SizeOp::verify() { return verifySizeName(*this, getName()); }
LogicalResult TableOp::verify() {
  return failure(failed(verifySizeName(*this, getName())) || failed(verifyExtent(*this, getLength())));
}

//===--------------------------------------------------------------------===//
// Exchanges and bodies
//===--------------------------------------------------------------------===//

/// An extent as a sum, and the number that ends it.
static std::pair<Extent, int64_t> asSum(const Extent &extent) {
  bool isSum = extent.op() == Extent::Op::Add, isDifference = extent.op() == Extent::Op::Sub;
  std::optional<int64_t> number = extent.constant();
  if (isSum || isDifference)
    number = extent.operands()[1].constant();
  if (!number)
    return {extent, 0};
  return {isSum || isDifference ? extent.operands()[0] : Extent(0),
          isDifference ? int64_t(-uint64_t(*number)) : *number};
}

/// A message has 1 row or more, and is none that has a number of rows more or less than a block, which has `rows`.
static LogicalResult verifyMessage(ExchangeOp exchange, const Extent &rows) { // C3
  for (ExtentAttr message : {exchange.getSentAttr(), exchange.getReceivedAttr()}) {
    if (!message)
      continue;
    if (message.getExtent().constant().value_or(1) < 1)
      return exchange.emitOpError("expected 1 row or more, got: ") << message.getText();
    auto [sum, number] = asSum(message.getExtent());
    auto [sumOfRows, numberOfRows] = asSum(rows);
    if (sum == sumOfRows && number != numberOfRows)
      return exchange.emitOpError("expected ") << rows.str() << " rows, as a block has, got: " << message.getText();
  }
  return success();
}

LogicalResult ExchangeOp::verify() {
  if (bool(getPart()) != bool(getParts()) || bool(getSent()) != bool(getReceived())) // C3
    return emitOpError("expected rows that are sent and rows that are received, got: one of these");
  if (failed(verifyRows([&] { return emitOpError(); }, getPartAttr(), getPartsAttr())))
    return failure();
  if (getOffset().getExtent().constant() == 0) // C2
    return emitOpError("expected an offset to another rank, got: 0");
  if (getSource() == getDestination())
    return emitOpError("expected a source and a destination that differ, got: `")
           << TensorInfo::of(getSource()).name.getValue() << "` twice";
  TensorInfo to = TensorInfo::of(getDestination()), from = TensorInfo::of(getSource());
  auto extentsOf = [](const TensorInfo &info) {
    SmallVector<Extent> extents;
    for (auto extent : info.extents.getAsRange<ExtentAttr>())
      extents.push_back(extent.getExtent());
    return extents;
  };
  SmallVector<Extent> own = extentsOf(to), other = extentsOf(from);
  bool fits = to.element == from.element && own.size() == other.size() && !own.empty() &&
              ArrayRef(own).drop_front() == ArrayRef(other).drop_front();
  if (fits && !getParts())
    fits = own[0] == other[0];
  else if (fits)
    fits = own[0] == getParts()->getExtent() * other[0] || own[0] == other[0] * getParts()->getExtent();
  if (fits) // C1
    return verifyMessage(*this, other[0]);
  InFlightDiagnostic error = emitOpError("expected a destination of the source's elements and extents");
  if (getParts())
    error << ", with " << getParts()->getText() << " times its rows";
  return error << ", got: `" << to.name.getValue() << "` and `" << from.name.getValue() << "`";
}

LogicalResult RepeatOp::verify() {
  if (failed(verifySizeName(*this, getName())))
    return failure();
  size_t count = getInitial().size(), arguments = getBody().front().getNumArguments();
  if (arguments != count || getNames().size() != count || getNumResults() != count) // C1
    return emitOpError("expected as many carried values as names, arguments of the body and results, got: ")
           << count << ", " << getNames().size() << ", " << arguments << " and " << getNumResults();
  return success();
}

LogicalResult RepeatOp::verifyRegions() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getNext().size() != getInitial().size()) // C1
    return yield.emitOpError("expected ")
           << getInitial().size() << " values, as are carried, got: " << yield.getNext().size();
  for (auto [initial, next, name] :
       llvm::zip_equal(getInitial(), yield.getNext(), getNames().getAsValueRange<StringAttr>())) {
    TensorInfo first = TensorInfo::of(initial), later = TensorInfo::of(next);
    if (first.element != later.element || first.extents != later.extents) // C2
      return yield.emitOpError("expected the elements and extents of `")
             << first.name.getValue() << "` to be yielded for `" << name << "`, got: `" << later.name.getValue() << "`";
    for (Value value : {initial, next})
      if (auto tensor = value.getDefiningOp<TensorOp>(); tensor && tensor.getLead() != Lead::none)
        return emitOpError("expected memory without leading dimensions to be carried, got: `")
               << tensor.getName() << "`";
  }
  return success();
}

LogicalResult WhenOp::verify() {
  if (unsigned count = getBody().front().getNumArguments()) // C1
    return emitOpError("expected steps without block arguments, got: ") << count;
  return success();
}

LogicalResult DefOp::verify() {
  if (getSymName().empty())
    return emitOpError("expected a name, got: \"\"");
  if (unsigned count = getBody().front().getNumArguments()) // C1
    return emitOpError("expected tensors to be `program.tensor`s, got: ") << count << " block arguments";
  return success();
}

LogicalResult LaunchOp::verify() {
  if (getBlocks().getExtent().constant().value_or(1) < 1) // C5
    return emitOpError("expected a grid of 1 block or more, got: ") << getBlocks().getText();
  auto tensors = getTensors();
  size_t needed =
      llvm::count_if(getArguments().getAsRange<ArgumentAttr>(), [](ArgumentAttr a) { return a.hasTensor(); });
  if (tensors.size() != needed)
    return emitOpError("expected ") << needed << " tensors for its arguments, got: " << tensors.size();
  for (auto [tensor, argument, number] : accessesOf(*this)) {
    TensorInfo info = TensorInfo::of(tensor);
    int64_t rank = info.extents.size();
    bool isMap = argument.getKind() == ArgumentKind::map; // whose columns are the last axis
    for (int64_t axis : argument.getAxes())
      if (axis < 0 || axis >= rank - isMap)
        return emitOpError("expected axes of `")
               << info.name.getValue() << "` from 0 to " << rank - 1 - isMap << ", got: " << axis;
    if (isMap && llvm::SmallSet<int64_t, 4>(argument.getAxes().begin(), argument.getAxes().end()).size() !=
                     argument.getAxes().size())
      return emitOpError("expected axes of a map that differ, got: ") << argument;
    if (argument.writes() &&
        llvm::any_of(accessesOf(*this), [&, tensor = tensor, number = number](const TensorAccess &other) {
          return other.number != number && other.tensor == tensor && other.argument.getKind() != ArgumentKind::stride;
        }))
      return emitOpError("expected one argument for `")
             << info.name.getValue() << "`, which the launch writes, got: several";
  }
  return success();
}

LogicalResult DefOp::verifyRegions() {
  if (failed(checkNames(*this)) || failed(checkSizes(*this)))
    return failure();
  return checkAccesses(*this);
}

//===--------------------------------------------------------------------===//
// Launches and their kernels
//===--------------------------------------------------------------------===//

static GridUnit unitOf(attn::tile::KernelOp kernel) {
  if (kernel.hasRows())
    return GridUnit::clusters;
  if (kernel.getTiles())
    return GridUnit::sequence_tiles;
  return kernel.getKeys() ? GridUnit::kv_tiles : GridUnit::query_tiles;
}

/// Is a kernel's argument of this type what the launch gives?
static bool takes(Type type, ArgumentAttr argument, Type element) {
  switch (argument.getKind()) {
  case ArgumentKind::pointer: {
    auto pointer = dyn_cast<attn::tile::PtrType>(type);
    return pointer && pointer.getElement() == element;
  }
  case ArgumentKind::map: {
    auto map = dyn_cast<attn::tile::TensorMapType>(type);
    return map && map.getElement() == element && map.getPacked() == (argument.getAxes().size() == 2);
  }
  case ArgumentKind::stride:
    return type.isInteger(64);
  case ArgumentKind::size:
    return type.isInteger(32) || type.isInteger(64);
  case ArgumentKind::blocks:
    return type.isInteger(32);
  case ArgumentKind::counter:
    return isa<attn::tile::QueueType>(type);
  }
  llvm_unreachable("covered");
}

static LogicalResult verifyKernel(DefOp program, LaunchOp launch, SymbolTableCollection &symbols) { // C7
  auto kernel = symbols.lookupNearestSymbolFrom<attn::tile::KernelOp>(program, launch.getKernelAttr());
  if (!kernel)
    return launch.emitOpError("expected the name of a `tile.kernel`, got: @") << launch.getKernel();
  if (unitOf(kernel) != launch.getUnit())
    return launch.emitOpError("expected a grid of ")
           << stringifyGridUnit(unitOf(kernel)) << ", as @" << launch.getKernel()
           << " has, got: " << stringifyGridUnit(launch.getUnit());
  auto arguments = launch.getArguments().getAsRange<ArgumentAttr>();
  size_t count = launch.getArguments().size(), expected = kernel.getBody().getNumArguments();
  if (count != expected)
    return launch.emitOpError("expected ")
           << expected << " arguments, as @" << launch.getKernel() << " has, got: " << count;
  auto tensor = launch.getTensors().begin();
  for (auto [argument, parameter, name] :
       llvm::zip_equal(arguments, kernel.getBody().getArguments(), kernel.getArgNames())) {
    Type element = argument.hasTensor() ? TensorInfo::of(*tensor++).element : Type();
    if (!takes(parameter.getType(), argument, element))
      return launch.emitOpError("expected an argument for `")
             << cast<StringAttr>(name).getValue() << "` of type " << parameter.getType() << ", got: " << argument;
  }
  return success();
}

LogicalResult DefOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success(!walk([&](LaunchOp launch) {
                    return failed(verifyKernel(*this, launch, symbols)) ? WalkResult::interrupt()
                                                                        : WalkResult::advance();
                  }).wasInterrupted());
}
