// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel more in a program, by a pass of its own: nothing that binds, sizes or launches programs knows it.
//
#include "attn/Dialect/Program/IR/Program.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace attn;

namespace {

/// Sets the LSE of the first row of 3 heads of a dense sequence to 0, each in a block.
struct TestAddKernel : PassWrapper<TestAddKernel, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestAddKernel)
  StringRef getArgument() const final { return "test-add-kernel"; }
  StringRef getDescription() const final { return "add a kernel that clears to each program with an lse"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<tile::TileDialect, program::ProgramDialect>();
  }

  void runOnOperation() final {
    for (auto program : llvm::to_vector(getOperation().getOps<program::DefOp>()))
      for (auto tensor : program.getOps<program::TensorOp>())
        if (tensor.getName() == "lse" && tensor.getRole() == program::Role::result)
          return add(program, tensor);
  }

private:
  void add(program::DefOp program, program::TensorOp lse) {
    auto first = *getOperation().getOps<tile::KernelOp>().begin();
    std::string text = R"(
      tile.kernel @clear_first(%lse: !tile.ptr<f32>, %head: i64, %rows: i32)
          target("TARGET") grid(dense heads 1 tiles 1)
          schedule(#tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1>) {
        %block = tile.index block
        %wide = arith.extsi %block : i32 to i64
        %offset = arith.muli %wide, %head : i64
        %entry = tile.advance %lse, %offset : !tile.ptr<f32>
        tile.clear %entry : !tile.ptr<f32>
      })";
    text.replace(text.find("TARGET"), 6, first.getTarget());
    if (failed(parseSourceString(text, getOperation().getBody(), ParserConfig(&getContext()))))
      return signalPassFailure();
    Builder b(&getContext());
    auto at = OpBuilder::atBlockEnd(&program.getBody().front());
    using program::ArgumentAttr, program::ArgumentKind, program::Effect, program::ExtentAttr;
    auto extent = [&](StringRef text) {
      return ExtentAttr::get(&getContext(), *rt::Extent::parse(std::string_view(text)));
    };
    auto argument = [&](ArgumentKind kind, Effect effect, ArrayRef<int64_t> axes, ExtentAttr extent) -> Attribute {
      return ArgumentAttr::get(&getContext(), kind, effect, 0, 1, false, axes, extent);
    };
    SmallVector<Attribute> arguments = {argument(ArgumentKind::pointer, Effect::update, {}, {}),
                                        argument(ArgumentKind::stride, Effect::none, {1}, {}),
                                        argument(ArgumentKind::size, Effect::none, {}, extent("2 * seqlen_q"))};
    program::LaunchOp::create(at, lse.getLoc(), "clear_first", program::GridUnit::sequence_tiles, extent("batch * 3"),
                              ValueRange{lse.getTensor(), lse.getTensor()}, b.getArrayAttr(arguments));
  }
};

} // namespace

namespace attn::test {
std::unique_ptr<Pass> createTestAddKernel() { return std::make_unique<TestAddKernel>(); }
void registerTestAddKernel() { PassRegistration<TestAddKernel>(); }
} // namespace attn::test
