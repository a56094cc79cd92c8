// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/Program.h"

#include <fmt/format.h>

#include <algorithm>

using namespace attn::rt;
using Kind = Program::Argument::Kind;
using StepKind = Program::Step::Kind;
using Lead = Program::Tensor::Lead;
using Check = Program::ArrayCheck::Kind;

std::string_view attn::rt::toString(Dtype dtype) {
  constexpr std::string_view names[] = {"bf16", "f16", "f32", "i32"};
  return names[static_cast<int>(dtype)];
}

int64_t attn::rt::sizeOf(Dtype dtype) { return dtype == Dtype::BF16 || dtype == Dtype::F16 ? 2 : 4; }

void Program::setSignature(Program signature) {
  const int before = static_cast<int>(tensors.size()), count = static_cast<int>(signature.tensors.size());
  auto renumber = [&](int &tensor) {
    if (tensor >= before) { // a buffer or carried value
      tensor += count - before;
    } else if (tensor >= 0) {
      tensor = signature.tensorNamed(tensors[static_cast<size_t>(tensor)].name); // -1: `compile` refuses it
    }
  };
  auto renumberSteps = [&](auto &self, std::vector<Step> &list) -> void {
    for (Step &step : list) {
      for (Argument &argument : step.arguments)
        renumber(argument.tensor);
      for (int &tensor : step.zeroed)
        renumber(tensor);
      renumber(step.destination), renumber(step.source);
      for (Carried &carried : step.carried)
        renumber(carried.value), renumber(carried.initial), renumber(carried.next);
      self(self, step.steps);
    }
  };
  renumberSteps(renumberSteps, steps);
  tensors = std::move(signature.tensors);
  checks = std::move(signature.checks);
  maxExtent = signature.maxExtent;
}

Dtype Program::dtypeOf(int tensor) const {
  size_t i = static_cast<size_t>(tensor);
  return i < tensors.size() ? tensors[i].dtype : buffers[i - tensors.size()].dtype;
}

int Program::tensorNamed(std::string_view name) const {
  auto found = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor &tensor) { return tensor.name == name; });
  return found == tensors.end() ? -1 : static_cast<int>(found - tensors.begin());
}

const std::string &Program::nameOf(int tensor) const {
  size_t i = static_cast<size_t>(tensor);
  return i < tensors.size() ? tensors[i].name : buffers[i - tensors.size()].name;
}

//===--------------------------------------------------------------------===//
// Numbers for names
//===--------------------------------------------------------------------===//

/// Numbers the sizes, tables and values of a program, and holds it against its rules.
class ProgramCode::Compiler {
public:
  Compiler(ProgramCode &code, const Program &program) : code(code), program(program) {}

  Status compile() {
    for (const Program::TableSpec &table : program.tables)
      code.tableNames.push_back(table.name);
    nameSizes();
    for (const Program::Size &size : program.sizes) {
      if (std::find(names().begin(), names().end(), size.name) != names().end())
        return error("expected each size to be computed once, got: `{}` again", size.name);
      if (Status made = compileInto(size.value, code.derived.emplace_back()); !made)
        return made;
      names().push_back(size.name);
    }
    for (const Program::TableSpec &table : program.tables)
      if (Status made = compileInto(table.length, code.lengths.emplace_back()); !made)
        return made;
    for (const Program::Tensor &tensor : program.tensors) {
      if (Status made = addShape(tensor.extents); !made)
        return made;
      for (const Extent &extent : tensor.extents)
        code.shapes.back().known.push_back(numberOf(extent.definedSize()));
      if (tensor.lead != Lead::None)
        code.shapes.back().lead = numberOf(nameOfLead(tensor));
    }
    for (const Program::Buffer &buffer : program.buffers) {
      if (Status made = addShape(buffer.extents); !made)
        return made;
      code.places = std::max(code.places, buffer.place + 1);
    }
    for (const Program::ArrayCheck &check : program.checks)
      if (Status made = addCheck(check); !made)
        return made;
    scope = names();
    for (size_t i = 0; i < code.shapes.size(); ++i)
      like.push_back(static_cast<int>(i));
    isKnown.assign(like.size(), true);
    Status made = compile(program.steps, code.steps);
    code.values = like.size();
    return made;
  }

private:
  std::vector<std::string> &names() { return code.names; }
  template <typename... T> static Error error(fmt::format_string<T...> text, T &&...arguments) {
    return {fmt::format(text, std::forward<T>(arguments)...), {}, {}};
  }

  /// Sizes that a caller gives.
  void nameSizes() {
    auto isSize = [&](std::string_view name) {
      return std::any_of(program.sizes.begin(), program.sizes.end(),
                         [&](const Program::Size &size) { return size.name == name; });
    };
    auto give = [&](std::string_view name) {
      if (!name.empty() && !isSize(name) && std::find(names().begin(), names().end(), name) == names().end())
        names().emplace_back(name);
    };
    names() = {"multiprocessors", "rank", "ranks"}; // machineSizes
    for (const Program::Tensor &tensor : program.tensors) {
      if (tensor.lead != Lead::None)
        give(nameOfLead(tensor));
      for (const Extent &extent : tensor.extents)
        give(extent.definedSize());
    }
  }

  /// The size that says how many rows the leading dimensions of a tensor are.
  static std::string nameOfLead(const Program::Tensor &tensor) {
    return tensor.lead == Lead::All ? "id_rows" : tensor.name + "_rows";
  }
  /// Of a given size; -1: there is none of this name.
  int numberOf(std::string_view name) const {
    auto end = code.names.begin() + static_cast<ptrdiff_t>(code.given());
    auto found = std::find(code.names.begin(), end, name);
    return name.empty() || found == end ? -1 : static_cast<int>(found - code.names.begin());
  }

  Status addCheck(const Program::ArrayCheck &check) {
    CheckCode &own = code.checks.emplace_back();
    for (auto [extent, to] : {std::pair(&check.rows, &own.rows), std::pair(&check.line, &own.line)})
      if (Status made = compileInto(*extent, *to); !made)
        return made;
    constexpr size_t counts[] = {2, 3, 2, 3, 3};
    bool fits = check.arrays.size() == counts[static_cast<int>(check.kind)] && check.tile >= 0;
    for (size_t i = 0; fits && i < check.arrays.size(); ++i) {
      bool mayMiss = i > 0 && (check.kind == Check::Offsets || check.kind == Check::Parents);
      int array = check.arrays[i];
      fits = array < static_cast<int>(program.tensors.size()) && array >= (mayMiss ? -1 : 0) &&
             (array < 0 || program.tensors[static_cast<size_t>(array)].dtype == Dtype::I32);
    }
    if (!fits || (check.kind == Check::Tiles && check.tile < 1))
      return error("expected a check of i32 arrays that the program has");
    return {};
  }

  Status compileInto(const Extent &extent, ExtentCode &to) {
    auto made = ExtentCode::compile(extent, scope.empty() ? names() : scope, code.tableNames);
    if (!made)
      return made.error();
    to = std::move(*made);
    return {};
  }

  Status addShape(const std::vector<Extent> &extents) {
    ShapeCode &shape = code.shapes.emplace_back();
    for (const Extent &extent : extents) {
      if (extent.constant().value_or(0) < 0)
        return error("expected extents of 0 or more, got: {}", extent.str());
      if (Status made = compileInto(extent, shape.extents.emplace_back()); !made)
        return made;
    }
    return {};
  }

  const std::vector<Extent> &extentsOf(int value) const {
    size_t i = static_cast<size_t>(like[static_cast<size_t>(value)]), given = program.tensors.size();
    return i < given ? program.tensors[i].extents : program.buffers[i - given].extents;
  }

  /// Is it a value that is known here, with these axes?
  Status check(int value, const std::vector<int> &axes = {}) const {
    if (value < 0 || value >= static_cast<int>(like.size()))
      return error("expected a tensor from 0 to {}, got: {}", like.size() - 1, value);
    if (!isKnown[static_cast<size_t>(value)])
      return error("expected a value that is carried here, got: {}", value);
    for (int axis : axes)
      if (axis < 0 || axis >= static_cast<int>(extentsOf(value).size()))
        return error("expected axes that `{}` has, got: {}", program.nameOf(like[static_cast<size_t>(value)]), axis);
    return {};
  }

  Status compile(const std::vector<Program::Step> &steps, std::vector<StepCode> &to) {
    constexpr int deepest = 16;
    if (++depth > deepest)
      return error("expected at most {} levels of steps, got: more", deepest);
    to.reserve(steps.size());
    for (const Program::Step &step : steps) {
      StepCode &own = to.emplace_back();
      code.exchanges |= step.kind == StepKind::Exchange;
      code.nested |= step.kind > StepKind::Clear;
      Status made = step.kind == StepKind::Launch || step.kind == StepKind::Clear ? launch(step, own)
                    : step.kind == StepKind::Exchange                             ? exchange(step, own)
                    : step.kind == StepKind::Wait                                 ? check(step.destination)
                                                                                  : body(step, own);
      if (!made)
        return made;
    }
    --depth;
    return {};
  }

  /// Values of repeats within a body are known there alone.
  void forget(size_t first) { std::fill(isKnown.begin() + static_cast<ptrdiff_t>(first), isKnown.end(), false); }

  Status launch(const Program::Step &step, StepCode &own) {
    int least = step.kind == StepKind::Launch ? 0 : -1;
    if (step.kernel < least || step.kernel >= static_cast<int>(program.kernels.size()))
      return error("expected a kernel from 0 to {}, got: {}", program.kernels.size() - 1, step.kernel);
    if (Status made = compileInto(step.blocks, own.count); !made)
      return made;
    for (const Program::Argument &argument : step.arguments) {
      if (Status made = compileInto(argument.extent, own.sizes.emplace_back()); !made)
        return made;
      bool named = argument.kind == Kind::Pointer || argument.kind == Kind::TensorMap || argument.kind == Kind::Stride;
      if (Status there = named ? check(argument.tensor, argument.axes) : Status(); !there)
        return there;
      size_t axes = argument.axes.size();
      if ((argument.kind == Kind::Stride && axes != 1) || (argument.kind == Kind::TensorMap && axes != 2 && axes != 3))
        return error("expected 1 axis of a stride and 2 or 3 of a tensor map, got: {}", axes);
      if (argument.kind == Kind::TensorMap && sizeOf(dtypeOf(argument.tensor)) != 2)
        return error("expected elements of bf16 or f16 of a tensor map, got: {}", toString(dtypeOf(argument.tensor)));
    }
    for (int tensor : step.zeroed)
      if (Status there = check(tensor); !there)
        return there;
    return {};
  }

  Dtype dtypeOf(int value) const { return program.dtypeOf(like[static_cast<size_t>(value)]); }

  /// Memory that is carried or exchanged has no leading dimensions.
  Status checkLead(int value) const {
    size_t i = static_cast<size_t>(like[static_cast<size_t>(value)]);
    if (i < program.tensors.size() && program.tensors[i].lead != Program::Tensor::Lead::None)
      return error("expected memory without leading dimensions to be carried or exchanged, got: `{}`",
                   program.tensors[i].name);
    return {};
  }

  Status exchange(const Program::Step &step, StepCode &own) {
    for (int value : {step.destination, step.source}) {
      if (Status there = check(value, {0}); !there)
        return there;
      if (Status plain = checkLead(value); !plain)
        return plain;
    }
    for (const Extent &extent : {step.offset, step.part, step.parts, step.sent.value_or(0), step.received.value_or(0)})
      if (Status made = compileInto(extent, own.numbers.emplace_back()); !made)
        return made;
    return {};
  }

  Status body(const Program::Step &step, StepCode &own) {
    if (Status made = compileInto(step.count, own.count); !made)
      return made;
    if (step.kind == StepKind::When) {
      const size_t outside = like.size();
      Status made = compile(step.steps, own.steps);
      forget(outside);
      return made;
    }
    if (std::find(scope.begin(), scope.end(), step.variable) != scope.end())
      return error("expected names of sizes that are distinct, got: `{}` twice", step.variable);
    for (const Program::Carried &carried : step.carried) {
      if (Status there = check(carried.initial); !there)
        return there;
      if (Status plain = checkLead(carried.initial); !plain)
        return plain;
    }
    for (const Program::Carried &carried : step.carried) {
      if (carried.value != static_cast<int>(like.size()))
        return error("expected carried values in the order of their numbers, {}, got: {}", like.size(), carried.value);
      like.push_back(like[static_cast<size_t>(carried.initial)]), isKnown.push_back(true);
    }
    const size_t outside = like.size();
    own.variable = scope.size() - names().size();
    code.variables = std::max(code.variables, own.variable + 1);
    scope.push_back(step.variable);
    if (Status made = compile(step.steps, own.steps); !made)
      return made;
    scope.pop_back();
    for (const Program::Carried &carried : step.carried) {
      if (Status there = check(carried.next); !there)
        return there;
      if (dtypeOf(carried.next) != dtypeOf(carried.value) || extentsOf(carried.next) != extentsOf(carried.value))
        return error("expected carried values of equal dtypes and extents, got: {} and {}", carried.initial,
                     carried.next);
      if (Status plain = checkLead(carried.next); !plain)
        return plain;
    }
    forget(outside);
    return {};
  }

  ProgramCode &code;
  const Program &program;
  std::vector<std::string> scope; ///< sizes, and the variables of the repeats around a step
  std::vector<int> like;          ///< of each value, the tensor or buffer whose dtype and extents it has
  std::vector<bool> isKnown;
  int depth = 0;
};

Result<ProgramCode> ProgramCode::compile(Program program) {
  ProgramCode code;
  if (Status made = Compiler(code, program).compile(); !made)
    return made.error();
  code.source = std::move(program);
  return code;
}

//===--------------------------------------------------------------------===//
// Sizes and the workspace
//===--------------------------------------------------------------------===//

void ProgramCode::computeSizes(int64_t *values, const Table *tables) const {
  for (size_t i = 0; i < derived.size(); ++i)
    values[given() + i] = derived[i].evaluate(values, tables);
}

int64_t ProgramCode::valueOf(std::string_view name, const int64_t *values) const {
  auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : values[found - names.begin()];
}

void ProgramCode::startSizes(std::vector<int64_t> &sizes) const {
  sizes.assign(names.size(), 0);
  sizes[2] = 1; // ranks
}

std::vector<int64_t> ProgramCode::makeSizes() const {
  std::vector<int64_t> sizes;
  startSizes(sizes);
  return sizes;
}

std::optional<ExpectedLengths> ProgramCode::expectedLengths(const int64_t *values) const {
  const SpecializationRule &rule = source.specialization;
  if (rule.source == SpecializationRule::Source::Nothing)
    return std::nullopt;
  return rule.expectedFor(valueOf("batch", values), valueOf(rule.packedQ ? "total_q" : "seqlen_q", values),
                          valueOf(rule.packedKv ? "total_kv" : "seqlen_kv", values));
}

int64_t ProgramCode::ShapeCode::elements(const int64_t *values, const Table *tables) const {
  int64_t count = 1;
  for (const ExtentCode &extent : extents) {
    int64_t own = std::clamp<int64_t>(extent.evaluate(values, tables), 0, most);
    count = own == 0 ? 0 : std::min(count, most / own) * own;
  }
  return count;
}

std::vector<int64_t> ProgramCode::shapeOf(int tensor, const int64_t *values, const Table *tables) const {
  std::vector<int64_t> shape;
  for (const ExtentCode &extent : shapes[static_cast<size_t>(tensor)].extents)
    shape.push_back(extent.evaluate(values, tables));
  return shape;
}

static int64_t aligned(int64_t bytes) { return (bytes + 15) / 16 * 16; }

int64_t ProgramCode::placeBuffers(const int64_t *values, const Table *tables, std::vector<int64_t> &offsets) const {
  std::vector<int64_t> sizes(static_cast<size_t>(places), 0); // of each place: that of its longest buffer
  for (size_t i = 0; i < source.buffers.size(); ++i) {
    int64_t &size = sizes[static_cast<size_t>(source.buffers[i].place)];
    size = std::max(size, shapes[source.tensors.size() + i].elements(values, tables) * sizeOf(source.buffers[i].dtype));
  }
  int64_t bytes = 0;
  for (int64_t size : sizes) {
    offsets.push_back(aligned(bytes));
    bytes = offsets.back() + size;
  }
  return bytes;
}

size_t ProgramCode::workspaceBytes(const int64_t *values, const Table *tables) const {
  std::vector<int64_t> offsets;
  return static_cast<size_t>(placeBuffers(values, tables, offsets));
}
