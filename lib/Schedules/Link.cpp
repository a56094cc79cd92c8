// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an attn.program's calls say of its tensors, held together.
//
#include "Link.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;
using rt::Extent;
using Tensor = rt::Program::Tensor;

/// The signature of a computation under the mask that was given, whose arrays are what calls give.
static rt::Program signatureAsGiven(Computation computation) {
  ProblemOp problem = computation.problem;
  auto given = dyn_cast_or_null<MaskInterface>(problem->getAttr(givenMaskAttrName));
  if (!given)
    return signatureOf(computation);
  MaskInterface canonical = problem.getMask();
  problem.setMaskAttr(given);
  rt::Program signature = signatureOf(computation);
  problem.setMaskAttr(canonical);
  return signature;
}

static rt::Program signatureOfCallee(Operation *callee) {
  return llvm::TypeSwitch<Operation *, rt::Program>(callee)
      .Case<ProblemOp, BackwardOp>([](auto op) { return signatureAsGiven(op); })
      .Case<GatherRowsOp, ComputationInterface>([](auto op) { return signatureOf(op); });
}

Extent attn::substituted(const Extent &extent, llvm::function_ref<std::optional<Extent>(StringRef)> of) {
  if (extent.op() == Extent::Op::Constant)
    return extent;
  if (extent.op() == Extent::Op::Symbol)
    return of(extent.name()).value_or(extent);
  std::vector<Extent> operands;
  for (const Extent &operand : extent.operands())
    operands.push_back(substituted(operand, of));
  return extent.op() == Extent::Op::Lookup ? Extent::lookup(extent.name(), operands.front())
                                           : Extent::of(extent.op(), std::move(operands));
}

static bool mentions(const Extent &extent, StringRef size) {
  std::vector<std::string> names;
  extent.collectSymbols(names);
  return llvm::is_contained(names, size);
}

/// The size that an extent `n`, `n + 1` or `max(n, 1)` defines, where the extent has this value.
static Extent sizeIn(const Extent &extent, const Extent &value) {
  if (extent.op() != Extent::Op::Add)
    return value;
  bool isSum = value.op() == Extent::Op::Add && value.operands()[1].constant() == 1;
  return isSum ? value.operands()[0] : value - 1;
}

namespace {
class Linker {
public:
  explicit Linker(ProgramOp program) : program(program) { linked.op = program; }

  FailureOr<LinkedProgram> run() {
    for (auto result : program.getOps<ResultOp>())
      resultNames[result.getTensor()] = result.getName();
    for (auto call : program.getOps<CallOp>())
      if (failed(add(call)))
        return failure();
    for (auto operand : program.getOps<OperandOp>())
      if (!linked.tensors.count(operand.getTensor()))
        return operand.emitOpError("expected a call that reads `") << operand.getName() << "`, got: none";
    finish();
    return std::move(linked);
  }

private:
  LogicalResult add(CallOp call) {
    Operation *callee = SymbolTable::lookupNearestSymbolFrom(program, call.getCalleeAttr());
    linked.calls.push_back({call, {}, {}, signatureOfCallee(callee)});
    LinkedProgram::Call &linking = linked.calls.back();
    const rt::Program &signature = linking.signature;
    for (const rt::Program::Size &size : signature.sizes)
      linking.sizes[size.name] = size.value;
    if (failed(matchNames(call, signature, linking.tensors)))
      return failure();
    // Tensors that are known decide sizes before those that are not; then all have to agree.
    llvm::SmallVector<std::pair<const Tensor *, Value>> known, fresh;
    for (auto [tensor, value] : llvm::zip_equal(signature.tensors, linking.tensors))
      if (!tensor.isResult())
        (linked.tensors.count(value) ? known : fresh).push_back({&tensor, value});
    for (auto [tensor, value] : known)
      if (failed(bindSizes(call, linking, *tensor, value)))
        return failure();
    for (auto [tensor, value] : fresh)
      for (const Extent &extent : tensor->extents)
        if (std::string size = extent.definedSize(); !size.empty() && !linking.sizes.count(size))
          linking.sizes[size] = Extent::symbol(freshSize(size, nameOf(value)));
    for (auto [tensor, value] : fresh)
      if (failed(define(call, linking, *tensor, value)))
        return failure();
    for (auto &list : {known, fresh})
      for (auto [tensor, value] : list)
        if (failed(agree(call, linking, *tensor, value)))
          return failure();
    size_t number = 0;
    for (auto [tensor, value] : llvm::zip_equal(signature.tensors, linking.tensors)) {
      size_t own = number++;
      if (!tensor.isResult())
        continue;
      Tensor result = tensor;
      result.name = freshName(value && resultNames.count(value) ? resultNames.lookup(value).str()
                                                                : call.getCallee().str() + "_" + tensor.name,
                              /*given=*/value && resultNames.count(value));
      for (Extent &extent : result.extents)
        extent = inProgram(linking, extent);
      if (value)
        linked.tensors[value] = std::move(result);
      else
        linked.unwanted[{linked.calls.size() - 1, own}] = std::move(result);
    }
    return success();
  }

  /// Finds the value of each tensor of the callee.
  LogicalResult matchNames(CallOp call, const rt::Program &signature, SmallVector<Value> &values) {
    llvm::StringMap<Value> operands, results;
    for (auto [name, value] : llvm::zip_equal(call.getOperandNames().getAsValueRange<StringAttr>(), call.getTensors()))
      operands[name] = value;
    for (auto [name, value] : llvm::zip_equal(call.getResultNames().getAsValueRange<StringAttr>(), call.getResults()))
      results[name] = value;
    std::string reads, writes;
    for (const Tensor &tensor : signature.tensors) {
      llvm::StringMap<Value> &names = tensor.isResult() ? results : operands;
      std::string &list = tensor.isResult() ? writes : reads;
      list += (list.empty() ? "`" : ", `") + tensor.name + "`";
      auto found = names.find(tensor.name);
      if (found == names.end() && !tensor.isResult())
        return call.emitOpError("expected the operand `")
               << tensor.name << "` of " << call.getCalleeAttr() << ", got: none";
      if (tensor.lead != Tensor::Lead::None)
        return call.emitOpError("expected a callee without ids, got: ") << call.getCalleeAttr();
      values.push_back(found == names.end() ? Value() : found->second);
      if (found != names.end())
        names.erase(found);
    }
    for (auto [names, list] : {std::pair(&operands, &reads), {&results, &writes}})
      if (!names->empty())
        return call.emitOpError(names == &operands ? "expected operands " : "expected results ")
               << *list << " of " << call.getCalleeAttr() << ", got: `" << names->begin()->getKey() << "`";
    return success();
  }

  /// Takes sizes of the callee from a tensor that an earlier call has defined.
  LogicalResult bindSizes(CallOp call, LinkedProgram::Call &linking, const Tensor &expected, Value value) {
    Tensor &actual = linked.tensors[value];
    if (actual.dtype != expected.dtype)
      return call.emitOpError("expected ")
             << std::string(toString(expected.dtype)) << " for `" << expected.name << "` of " << call.getCalleeAttr()
             << ", got: " << std::string(toString(actual.dtype)) << ", as `" << actual.name << "` is";
    if (actual.extents.size() != expected.extents.size())
      return call.emitOpError("expected ")
             << expected.extents.size() << " axes for `" << expected.name << "` of " << call.getCalleeAttr()
             << ", got: " << actual.extents.size() << ", as `" << actual.name << "` has";
    llvm::erase_if(actual.strided, [&](int axis) { return !llvm::is_contained(expected.strided, axis); });
    if (expected.role == Tensor::Role::Operand && actual.role == Tensor::Role::Array)
      actual.role = Tensor::Role::Operand;
    for (auto [own, given] : llvm::zip_equal(expected.extents, actual.extents))
      if (std::string size = own.definedSize(); !size.empty() && !linking.sizes.count(size))
        linking.sizes[size] = sizeIn(own, given);
    return success();
  }

  /// Holds the extents of a tensor against those that the callee expects.
  LogicalResult agree(CallOp call, LinkedProgram::Call &linking, const Tensor &expected, Value value) {
    Tensor &actual = linked.tensors[value];
    for (auto [own, given] : llvm::zip_equal(expected.extents, actual.extents))
      if (!unify(inProgram(linking, own), given))
        return call.emitOpError("expected the extent ")
               << inProgram(linking, own).str() << " for `" << expected.name << "` of " << call.getCalleeAttr()
               << ", got: " << resolved(given).str() << ", as `" << actual.name << "` has";
    return success();
  }

  /// A tensor of the caller, at its first use, once all sizes of the callee have names.
  LogicalResult define(CallOp call, LinkedProgram::Call &linking, const Tensor &expected, Value value) {
    if (linked.tensors.count(value)) // given twice in this call
      return bindSizes(call, linking, expected, value);
    Tensor tensor = expected;
    tensor.name = nameOf(value);
    for (Extent &extent : tensor.extents)
      extent = inProgram(linking, extent);
    linked.tensors[value] = std::move(tensor);
    return success();
  }

  static std::string nameOf(Value operand) { return cast<OperandOp>(operand.getDefiningOp()).getName().str(); }

  /// A callee's extent in the program's sizes.
  Extent inProgram(const LinkedProgram::Call &linking, const Extent &extent) const {
    return substituted(extent, [&](StringRef name) -> std::optional<Extent> {
      auto found = linking.sizes.find(name.str());
      return found == linking.sizes.end() ? std::nullopt : std::optional(found->second);
    });
  }

  /// An extent without sizes that have turned out to be others.
  Extent resolved(const Extent &extent) const {
    return substituted(extent, [&](StringRef name) -> std::optional<Extent> {
      auto found = equal.find(name.str());
      return found == equal.end() ? std::nullopt : std::optional(resolved(found->second));
    });
  }

  /// Makes two extents one by saying that a size of the caller's tensors is another's; false: they differ.
  bool unify(Extent a, Extent b) {
    a = resolved(a), b = resolved(b);
    if (a == b)
      return true;
    for (auto [one, other] : {std::pair(&b, &a), {&a, &b}}) {
      std::string size = one->definedSize();
      if (size.empty() || mentions(*other, size))
        continue;
      equal[size] = sizeIn(*one, *other);
      return true;
    }
    // Equal sizes make equal extents: rows of one tensor follow from those of another.
    return !a.operands().empty() && a.op() == b.op() && a.operands().size() == b.operands().size() &&
           llvm::all_of(llvm::zip(a.operands(), b.operands()),
                        [&](auto pair) { return unify(std::get<0>(pair), std::get<1>(pair)); });
  }

  std::string freshSize(const std::string &size, const std::string &tensor) {
    std::string name = size;
    for (int number = 0; !sizeNames.insert(name).second; ++number)
      name = size + "_of_" + tensor + (number ? "_" + std::to_string(number) : "");
    return name;
  }

  /// Names of operands and results are the program's own, those of buffers follow from calls.
  std::string freshName(std::string wish, bool given) {
    if (given)
      return wish;
    if (names.empty())
      for (Operation &op : program.getBody().front())
        if (auto operand = dyn_cast<OperandOp>(op))
          names.insert(operand.getName());
        else if (auto result = dyn_cast<ResultOp>(op))
          names.insert(result.getName());
    std::string name = wish;
    for (int number = 2; !names.insert(name).second; ++number)
      name = wish + "_" + std::to_string(number);
    return name;
  }

  void finish() {
    auto finishTensor = [&](Tensor &tensor) {
      for (Extent &extent : tensor.extents)
        extent = resolved(extent);
    };
    for (auto &[value, tensor] : linked.tensors)
      finishTensor(tensor);
    for (auto &[place, tensor] : linked.unwanted)
      finishTensor(tensor);
    rt::Program &signature = linked.signature;
    for (LinkedProgram::Call &call : linked.calls) {
      for (auto &[name, extent] : call.sizes)
        extent = resolved(extent);
      signature.maxExtent = std::min(signature.maxExtent, call.signature.maxExtent);
    }
    llvm::DenseMap<Value, int> numbers;
    for (Operation &op : program.getBody().front()) {
      Value value = isa<OperandOp>(op) ? op.getResult(0) : isa<ResultOp>(op) ? op.getOperand(0) : Value();
      if (!value)
        continue;
      numbers[value] = signature.tensors.size();
      linked.values.push_back(value);
      signature.tensors.push_back(linked.tensors[value]);
    }
    // What arrays of the caller have to hold. Those that calls write have no contents before a launch.
    for (LinkedProgram::Call &call : linked.calls)
      for (rt::Program::ArrayCheck check : call.signature.checks) {
        bool areGiven = true;
        for (int &array : check.arrays) {
          if (array < 0)
            continue;
          Value value = call.tensors[array];
          areGiven &= isa_and_nonnull<OperandOp>(value.getDefiningOp());
          array = numbers.lookup(value);
        }
        check.rows = resolved(inProgram(call, check.rows)), check.line = resolved(inProgram(call, check.line));
        if (areGiven)
          signature.checks.push_back(std::move(check));
      }
  }

  ProgramOp program;
  LinkedProgram linked;
  llvm::DenseMap<Value, StringRef> resultNames;
  llvm::StringSet<> names, sizeNames;
  std::map<std::string, Extent> equal; ///< sizes that have turned out to be other extents
};
} // namespace

llvm::StringSet<> attn::calleesOf(ModuleOp module) {
  llvm::StringSet<> names;
  for (auto program : module.getOps<ProgramOp>())
    for (auto call : program.getOps<CallOp>())
      names.insert(call.getCallee());
  return names;
}

FailureOr<LinkedProgram> attn::link(ProgramOp program) { return Linker(program).run(); }

FailureOr<rt::Program> attn::signatureOf(ProgramOp program) {
  FailureOr<LinkedProgram> linked = link(program);
  if (failed(linked))
    return failure();
  return std::move(linked->signature);
}
