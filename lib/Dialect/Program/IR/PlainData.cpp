// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the program dialect to plain data, and back for tensors and buffers.
//
#include "attn/Dialect/Program/IR/PlainData.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::program;

rt::Dtype attn::dtypeOf(Type element) {
  return element.isBF16()  ? rt::Dtype::BF16
         : element.isF16() ? rt::Dtype::F16
         : element.isF32() ? rt::Dtype::F32
                           : rt::Dtype::I32;
}

Type attn::elementOf(rt::Dtype dtype, MLIRContext *context) {
  switch (dtype) {
  case rt::Dtype::BF16:
    return BFloat16Type::get(context);
  case rt::Dtype::F16:
    return Float16Type::get(context);
  case rt::Dtype::F32:
    return Float32Type::get(context);
  case rt::Dtype::I32:
    return IntegerType::get(context, 32);
  }
  llvm_unreachable("covered");
}

static ArrayAttr toAttr(llvm::ArrayRef<rt::Extent> extents, MLIRContext *context) {
  return ArrayAttr::get(context, llvm::map_to_vector(extents, [&](const rt::Extent &extent) -> Attribute {
                          return ExtentAttr::get(context, extent);
                        }));
}

TensorOp attn::createTensor(OpBuilder &b, Location loc, const rt::Program::Tensor &tensor) {
  MLIRContext *context = b.getContext();
  return TensorOp::create(b, loc, ValueType::get(context), tensor.name, Role(tensor.role),
                          elementOf(tensor.dtype, context), Lead(tensor.lead), toAttr(tensor.extents, context),
                          SmallVector<int64_t>(tensor.strided.begin(), tensor.strided.end()));
}

BufferOp attn::createBuffer(OpBuilder &b, Location loc, StringRef name, rt::Dtype dtype,
                            llvm::ArrayRef<rt::Extent> extents) {
  MLIRContext *context = b.getContext();
  return BufferOp::create(b, loc, ValueType::get(context), name, elementOf(dtype, context), toAttr(extents, context),
                          IntegerAttr());
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
  to.access = argument.writes()  ? rt::Program::Argument::Access::Write
              : argument.reads() ? rt::Program::Argument::Access::Read
                                 : rt::Program::Argument::Access::None;
  to.axes.assign(argument.getAxes().begin(), argument.getAxes().end());
  if (argument.getExtent())
    to.extent = argument.getExtent().getExtent();
  if (auto map = dyn_cast<tile::TensorMapType>(parameter))
    to.boxRows = map.getRows(), to.boxCols = columnsOfBox, to.boxHeads = map.getHeads(), to.rowStep = map.getStride();
  return to;
}

namespace {
class Translation {
public:
  explicit Translation(DefOp program) : program(program), reusable(reusableLaunches(program)) {}

  rt::Program translate(StringRef name) {
    to.name = name.str();
    for (auto tensor : program.getOps<TensorOp>()) {
      numbers[tensor.getTensor()] = to.tensors.size();
      to.tensors.push_back({tensor.getName().str(), rt::Program::Tensor::Role(tensor.getRole()),
                            dtypeOf(tensor.getElement()), rt::Program::Tensor::Lead(tensor.getLead()),
                            extentsOf(tensor.getExtents()),
                            std::vector<int>(tensor.getStrided().begin(), tensor.getStrided().end())});
    }
    for (auto table : program.getOps<TableOp>())
      to.tables.push_back({table.getName().str(), table.getLength().getExtent()});
    for (auto size : program.getOps<SizeOp>())
      to.sizes.push_back({size.getName().str(), size.getValue().getExtent()});
    program.walk<WalkOrder::PreOrder>([&](BufferOp buffer) {
      int number = to.buffers.size();
      numbers[buffer.getTensor()] = to.tensors.size() + number;
      to.buffers.push_back({buffer.getName().str(), dtypeOf(buffer.getElement()), extentsOf(buffer.getExtents()),
                            int(buffer.getPlace().value_or(number))}); // without a pass each has its own
    });
    values = to.tensors.size() + to.buffers.size();
    translate(program.getBody().front(), to.steps);
    return std::move(to);
  }

private:
  using Step = rt::Program::Step;

  void translate(Block &body, std::vector<Step> &steps) {
    for (Operation &op : body)
      if (!isa<TensorOp, TableOp, SizeOp, BufferOp, YieldOp>(op))
        translate(&op, steps.emplace_back());
  }

  void translate(Operation *op, Step &step) {
    if (auto launch = dyn_cast<LaunchOp>(op))
      return translate(launch, step);
    if (auto exchange = dyn_cast<ExchangeOp>(op))
      return translate(exchange, step);
    if (auto repeat = dyn_cast<RepeatOp>(op))
      return translate(repeat, step);
    if (auto when = dyn_cast<WhenOp>(op)) {
      step.kind = Step::Kind::When;
      step.count = when.getCondition().getExtent();
      return translate(when.getBody().front(), step.steps);
    }
    if (auto wait = dyn_cast<WaitOp>(op)) {
      step.kind = Step::Kind::Wait;
      step.destination = numbers.at(wait.getDestination());
      return;
    }
    step.kind = Step::Kind::Clear;
    step.zeroed.push_back(numbers.at(cast<ClearOp>(op).getTensor()));
  }

  void translate(LaunchOp launch, Step &step) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<tile::KernelOp>(program, launch.getKernelAttr());
    std::string symbol = launch.getKernel().str();
    step.kernel = llvm::find(to.kernels, symbol) - to.kernels.begin();
    if (step.kernel == int(to.kernels.size()))
      to.kernels.push_back(symbol);
    step.blocks = launch.getBlocks().getExtent();
    if (kernel.getTiles() && kernel.getSchedule().getUnit() == tile::WorkUnit::warp_per_sequence) // warps have numbers
      step.mostBlocks = INT32_MAX / kernel.getSchedule().getWarps();
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

  void translate(ExchangeOp exchange, Step &step) {
    step.kind = Step::Kind::Exchange;
    step.destination = numbers.at(exchange.getDestination()), step.source = numbers.at(exchange.getSource());
    step.offset = exchange.getOffset().getExtent();
    if (exchange.getPart())
      step.part = exchange.getPart()->getExtent(), step.parts = exchange.getParts()->getExtent();
    if (exchange.getSent())
      step.sent = exchange.getSent()->getExtent(), step.received = exchange.getReceived()->getExtent();
  }

  void translate(RepeatOp repeat, Step &step) {
    step.kind = Step::Kind::Repeat;
    step.count = repeat.getCount().getExtent(), step.variable = repeat.getName().str();
    Block &body = repeat.getBody().front();
    for (auto [initial, argument, last] : llvm::zip_equal(repeat.getInitial(), body.getArguments(), repeat.getLast())) {
      step.carried.push_back({values, numbers.at(initial), -1});
      numbers[argument] = numbers[last] = values++;
    }
    translate(body, step.steps);
    for (auto [carried, next] : llvm::zip_equal(step.carried, body.getTerminator()->getOperands()))
      carried.next = numbers.at(next);
  }

  DefOp program;
  llvm::SmallPtrSet<Operation *, 8> reusable;
  rt::Program to;
  llvm::DenseMap<Value, int> numbers; ///< of tensors, buffers and carried values
  int values = 0;
};
} // namespace

rt::Program attn::toProgram(DefOp program, StringRef name) { return Translation(program).translate(name); }
