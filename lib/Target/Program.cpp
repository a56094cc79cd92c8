// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the program dialect to plain data.
//
#include "attn/Target/Source.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace attn;
using namespace attn::program;

static rt::Dtype dtypeOf(Type element) {
  return element.isBF16()  ? rt::Dtype::BF16
         : element.isF16() ? rt::Dtype::F16
         : element.isF32() ? rt::Dtype::F32
                           : rt::Dtype::I32;
}

static std::vector<rt::Extent> extentsOf(ArrayAttr extents) {
  std::vector<rt::Extent> list;
  for (auto extent : extents.getAsRange<ExtentAttr>())
    list.push_back(extent.getExtent());
  return list;
}

/// Columns of a box: a chunk of 128 bytes, what is swizzled at once.
static constexpr int columnsOfBox = 64;

static rt::Program::Argument toArgument(ArgumentAttr argument, int tensor, Type parameter) {
  using Kind = rt::Program::Argument::Kind;
  const Kind kinds[] = {Kind::Pointer, Kind::TensorMap, Kind::Stride,
                        Kind::Size,    Kind::Blocks,    Kind::Counter}; // as ArgumentKind
  rt::Program::Argument to;
  to.kind = kinds[int(argument.getKind())];
  to.tensor = tensor;
  to.axes.assign(argument.getAxes().begin(), argument.getAxes().end());
  if (argument.getExtent())
    to.extent = argument.getExtent().getExtent();
  if (auto map = dyn_cast<tile::MapType>(parameter))
    to.boxRows = map.getRows(), to.boxCols = columnsOfBox, to.boxHeads = map.getHeads();
  return to;
}

rt::Program attn::toProgram(DefOp program, StringRef name) {
  rt::Program to;
  to.name = name.str();
  llvm::DenseMap<Value, int> numbers;
  for (auto tensor : program.getOps<TensorOp>()) {
    numbers[tensor.getTensor()] = to.tensors.size();
    to.tensors.push_back({tensor.getName().str(), rt::Program::Tensor::Role(tensor.getRole()),
                          dtypeOf(tensor.getElement()), rt::Program::Tensor::Lead(tensor.getLead()),
                          extentsOf(tensor.getExtents()),
                          std::vector<int>(tensor.getStrided().begin(), tensor.getStrided().end())});
  }
  for (auto size : program.getOps<SizeOp>())
    to.sizes.push_back({size.getName().str(), size.getValue().getExtent()});
  for (auto [i, buffer] : llvm::enumerate(program.getOps<BufferOp>())) {
    numbers[buffer.getTensor()] = to.tensors.size() + i;
    to.buffers.push_back({buffer.getName().str(), dtypeOf(buffer.getElement()), extentsOf(buffer.getExtents()),
                          int(buffer.getPlace().value_or(i))}); // without a pass each has its own
  }
  llvm::SmallPtrSet<Operation *, 8> reusable = reusableLaunches(program);
  for (Operation &op : *program.getBody().begin()) {
    if (auto clear = dyn_cast<ClearOp>(op)) {
      to.steps.emplace_back().zeroed.push_back(numbers.at(clear.getTensor()));
      continue;
    }
    auto launch = dyn_cast<LaunchOp>(op);
    if (!launch)
      continue;
    auto kernel = SymbolTable::lookupNearestSymbolFrom<tile::KernelOp>(program, launch.getKernelAttr());
    rt::Program::Step &step = to.steps.emplace_back();
    std::string symbol = launch.getKernel().str();
    step.kernel = llvm::find(to.kernels, symbol) - to.kernels.begin();
    if (step.kernel == int(to.kernels.size()))
      to.kernels.push_back(symbol);
    step.blocks = launch.getBlocks().getExtent();
    if (kernel.getTiles() && kernel.getConfig().hasStrips()) // warps have numbers
      step.mostBlocks = INT32_MAX / kernel.getConfig().getWarps();
    step.reusable = reusable.contains(launch);
    SmallVector<int> tensors(launch.getArguments().size(), -1);
    for (auto [tensor, argument, number] : accessesOf(launch)) {
      tensors[number] = numbers.at(tensor);
      if (argument.getOrZero())
        step.zeroed.push_back(tensors[number]);
    }
    for (auto [argument, tensor, parameter] : llvm::zip_equal(launch.getArguments().getAsRange<ArgumentAttr>(), tensors,
                                                              kernel.getBody().getArgumentTypes()))
      step.arguments.push_back(toArgument(argument, tensor, parameter));
  }
  return to;
}
