// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What makes a program sound: every value that a launch reads has been written, once, and every size is known.
//
#include "attn/Dialect/Program/IR/Program.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::program;
using attn::rt::Extent;

TensorInfo TensorInfo::of(Value tensor) {
  if (auto given = tensor.getDefiningOp<TensorOp>())
    return {given.getNameAttr(), given.getElement(), given.getExtents(), given.getRole()};
  auto buffer = cast<BufferOp>(tensor.getDefiningOp());
  return {buffer.getNameAttr(), buffer.getElement(), buffer.getExtents(), std::nullopt};
}

SmallVector<TensorAccess> attn::program::accessesOf(LaunchOp launch) {
  SmallVector<TensorAccess> accesses;
  auto tensor = launch.getTensors().begin();
  for (auto [number, argument] : llvm::enumerate(launch.getArguments().getAsRange<ArgumentAttr>()))
    if (argument.hasTensor())
      accesses.push_back({*tensor++, argument, unsigned(number)});
  return accesses;
}

llvm::SmallPtrSet<Operation *, 8> attn::program::reusableLaunches(DefOp program) {
  llvm::SmallPtrSet<Operation *, 8> reusable;
  for (auto launch : program.getOps<LaunchOp>())
    reusable.insert(launch);
  auto isLeftByThese = [&](Value buffer) { // every step that writes it is one of them
    return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
      auto launch = dyn_cast<LaunchOp>(user);
      auto writes = [&](const TensorAccess &use) { return use.tensor == buffer && use.argument.writes(); };
      return launch && (reusable.contains(launch) || llvm::none_of(accessesOf(launch), writes));
    });
  };
  auto isReusable = [&](LaunchOp launch) {
    return llvm::all_of(accessesOf(launch), [&](const TensorAccess &use) {
      std::optional<Role> role = TensorInfo::of(use.tensor).role;
      bool accesses = use.argument.reads() || use.argument.writes();
      return !accesses || use.argument.getEffect() == Effect::scratch ||
             (role ? *role == Role::array : isLeftByThese(use.tensor));
    });
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (auto launch : program.getOps<LaunchOp>())
      if (reusable.contains(launch) && !isReusable(launch))
        changed = reusable.erase(launch);
  }
  return reusable;
}

std::string attn::program::sizeOfLead(TensorOp tensor) {
  return tensor.getLead() == Lead::all ? "id_rows" : (tensor.getName() + "_rows").str();
}

static LogicalResult verifyElement(Operation *op, Type element) {
  if (element.isBF16() || element.isF16() || element.isF32() || element.isInteger(32))
    return success();
  return op->emitOpError("expected elements of bf16, f16, f32 or i32, got: ") << element;
}

LogicalResult TensorOp::verify() {
  int64_t rank = getExtents().size();
  for (int64_t axis : getStrided())
    if (axis < 0 || axis >= rank)
      return emitOpError("expected strided axes from 0 to ") << rank - 1 << ", got: " << axis;
  if (llvm::SmallSet<int64_t, 4>(getStrided().begin(), getStrided().end()).size() != getStrided().size())
    return emitOpError("expected each strided axis once, got: ") << getStridedAttr();
  return verifyElement(*this, getElement());
}

LogicalResult BufferOp::verify() {
  constexpr uint64_t mostPlaces = 1 << 16;
  if (getPlace().value_or(0) > mostPlaces)
    return emitOpError("expected a place from 0 to ") << mostPlaces << ", got: " << getPlaceAttr().getInt();
  return verifyElement(*this, getElement());
}

LogicalResult SizeOp::verify() {
  StringRef name = getName();
  bool isName = !name.empty() && !llvm::isDigit(name[0]) &&
                llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  if (!isName || name == "multiprocessors" || name == "id_rows")
    return emitOpError("expected an identifier that is no size of the chip or of ids, got: \"") << name << "\"";
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

//===--------------------------------------------------------------------===//
// Sizes
//===--------------------------------------------------------------------===//

static LogicalResult checkSizes(DefOp program) {
  llvm::StringSet<> known = {"multiprocessors"}, computed;
  for (auto tensor : program.getOps<TensorOp>()) {
    if (tensor.getLead() != Lead::none)
      known.insert(sizeOfLead(tensor));
    for (auto extent : tensor.getExtents().getAsRange<ExtentAttr>())
      if (std::string size = extent.getExtent().learnedSize(); !size.empty())
        known.insert(size);
  }
  auto check = [&](Operation *op, ExtentAttr extent) -> LogicalResult {
    std::vector<std::string> names;
    extent.getExtent().collectSymbols(names);
    for (const std::string &name : names)
      if (!known.contains(name)) // C2
        return op->emitOpError("expected sizes that tensors have or that are computed before it, got: `")
               << name << "`";
    return success();
  };
  for (Operation &op : *program.getBody().begin()) {
    LogicalResult checked =
        llvm::TypeSwitch<Operation *, LogicalResult>(&op)
            .Case([&](SizeOp size) -> LogicalResult {
              if (failed(check(size, size.getValue())))
                return failure();
              known.insert(size.getName());
              if (!computed.insert(size.getName()).second)
                return size.emitOpError("expected each size to be computed once, got: `")
                       << size.getName() << "` again";
              return success();
            })
            .Case<TensorOp, BufferOp>([&](auto tensor) -> LogicalResult {
              for (auto extent : tensor.getExtents().template getAsRange<ExtentAttr>())
                if (failed(check(tensor, extent)))
                  return failure();
              return success();
            })
            .Case([&](LaunchOp launch) -> LogicalResult {
              if (failed(check(launch, launch.getBlocks())))
                return failure();
              for (auto argument : launch.getArguments().getAsRange<ArgumentAttr>())
                if (argument.getExtent() && failed(check(launch, argument.getExtent())))
                  return failure();
              return success();
            })
            .Case([](ClearOp) { return success(); })
            .Default([](Operation *other) {
              return other->emitOpError("expected tensors, sizes, buffers, launches and clears in a program"); // C1
            });
    if (failed(checked))
      return failure();
  }
  return success();
}

//===--------------------------------------------------------------------===//
// Who reads and writes what
//===--------------------------------------------------------------------===//

namespace {
/// What is known of a tensor at a point of the program.
struct Contents {
  bool isWritten = false; ///< all of it
  bool isRead = false;
  int64_t parts = 1;
  SmallVector<bool> written; ///< of each class of rows
  Operation *writer = nullptr;
};

class Accesses {
public:
  explicit Accesses(DefOp program) : program(program) {}

  LogicalResult check() {
    for (Operation &op : *program.getBody().begin()) {
      if (auto clear = dyn_cast<ClearOp>(op)) {
        if (failed(write(clear, clear.getTensor(), 0, 1)))
          return failure();
        continue;
      }
      auto launch = dyn_cast<LaunchOp>(op);
      if (!launch)
        continue;
      SmallVector<TensorAccess> accesses = accessesOf(launch);
      for (auto [tensor, argument, number] : accesses) // what a launch reads was there before it
        if (failed(read(launch, argument, tensor)))
          return failure();
      for (auto [tensor, argument, number] : accesses) {
        if (argument.getEffect() == Effect::scratch && failed(scratch(launch, tensor)))
          return failure();
        if (argument.getEffect() == Effect::write &&
            failed(write(launch, tensor, argument.getPart(), argument.getParts())))
          return failure();
      }
    }
    for (auto tensor : program.getOps<TensorOp>())
      if (tensor.getRole() == Role::result && !contents[tensor.getTensor()].isWritten) // C5
        return tensor.emitOpError("expected every row of the result `")
               << tensor.getName() << "` to be written, got: " << stateOf(tensor.getTensor());
    for (auto buffer : program.getOps<BufferOp>())
      if (!contents[buffer.getTensor()].isRead) // C6
        return buffer.emitOpError("expected a launch that reads the buffer `") << buffer.getName() << "`, got: none";
    return success();
  }

private:
  std::string stateOf(Value tensor) {
    const Contents &own = contents[tensor];
    if (!own.writer)
      return "no launch that writes it";
    std::string missing;
    for (auto [part, done] : llvm::enumerate(own.written))
      if (!done)
        missing += (missing.empty() ? "" : ", ") + std::to_string(part);
    return "no launch that writes rows(" + missing + " of " + std::to_string(own.parts) + ")";
  }

  LogicalResult read(LaunchOp launch, ArgumentAttr argument, Value tensor) {
    if (!argument.reads())
      return success();
    TensorInfo info = TensorInfo::of(tensor);
    bool isGiven = info.role && *info.role != Role::result;
    if (argument.getEffect() == Effect::update && isGiven)
      return refuseInput(launch, info);
    if (!isGiven && !contents[tensor].isWritten) // C3
      return launch.emitOpError("expected `")
             << info.name.getValue() << "` to be written before it is read, got: " << stateOf(tensor);
    contents[tensor].isRead = true;
    return success();
  }

  static LogicalResult refuseInput(Operation *op, const TensorInfo &info) { // C5
    return op->emitOpError("expected operands and arrays to be read alone, got: a launch that writes `")
           << info.name.getValue() << "`";
  }

  LogicalResult scratch(LaunchOp launch, Value tensor) {
    if (TensorInfo info = TensorInfo::of(tensor); info.role)
      return launch.emitOpError("expected a buffer as scratch, got: `") << info.name.getValue() << "`";
    contents[tensor] = Contents{};
    contents[tensor].isRead = true;
    return success();
  }

  LogicalResult write(Operation *op, Value tensor, int64_t part, int64_t parts) {
    TensorInfo info = TensorInfo::of(tensor);
    if (info.role && *info.role != Role::result)
      return refuseInput(op, info);
    Contents &own = contents[tensor];
    if (!own.writer)
      own.parts = parts, own.written.assign(parts, false);
    if (own.parts != parts || own.written[part]) { // C4
      InFlightDiagnostic error = op->emitOpError("expected each row of `")
                                 << info.name.getValue()
                                 << "` to be written by one launch (others may update it), got: two";
      error.attachNote(own.writer->getLoc()) << "written here, too";
      return error;
    }
    own.writer = op, own.written[part] = true;
    own.isWritten = llvm::all_of(own.written, [](bool done) { return done; });
    return success();
  }

  DefOp program;
  llvm::DenseMap<Value, Contents> contents;
};
} // namespace

LogicalResult DefOp::verifyRegions() {
  llvm::StringSet<> names;
  for (Operation &op : *getBody().begin()) {
    StringRef name = isa<TensorOp>(op)   ? cast<TensorOp>(op).getName()
                     : isa<BufferOp>(op) ? cast<BufferOp>(op).getName()
                                         : StringRef();
    if (!name.empty() && !names.insert(name).second) // C1
      return op.emitOpError("expected names of tensors and buffers that are distinct, got: `") << name << "` twice";
  }
  if (failed(checkSizes(*this)))
    return failure();
  return Accesses(*this).check();
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
    auto map = dyn_cast<attn::tile::MapType>(type);
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

LogicalResult DefOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (auto launch : getOps<LaunchOp>()) { // C7
    auto kernel = symbols.lookupNearestSymbolFrom<attn::tile::KernelOp>(*this, launch.getKernelAttr());
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
  }
  return success();
}
