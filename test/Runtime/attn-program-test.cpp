// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-program-test: runs a program to which a pass has added a kernel, on the CPU, from plain data alone.
//
#include "TestHelpers.h"
#include "attn-rt/Launch.h"
#include "attn/API/Compile.h"
#include "attn/API/Pipeline.h"
#include "attn/Dialect/Program/IR/PlainData.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>

namespace attn::test {
std::unique_ptr<mlir::Pass> createTestAddKernel();
}

using namespace attn;

int main() {
  Compilation compilation;
  auto module =
      compilation.parse("attn.problem @p mask(#attn.causal) layout(bshd) heads(3) dims(16) dtype(bf16)", "problem");
  EXPECT(module.ok(), "{}", module.error().str());
  mlir::PassManager pm(&compilation.getContext());
  PipelineOptions options;
  options.target = "cpu";
  buildPipeline(pm, options);
  pm.addPass(test::createTestAddKernel());
  EXPECT(mlir::succeeded(pm.run(**module)));
  program::DefOp def = *(*module)->getOps<program::DefOp>().begin();
  auto program = rt::Program::fromJson(toProgram(def, "p").toJson());
  EXPECT(program.ok(), "{}", program.error().str());
  EXPECT(program->kernels == (std::vector<std::string>{"p", "clear_first"}) && program->steps.size() == 2);
  auto code = rt::ProgramCode::compile(*program);
  EXPECT(code.ok(), "{}", code.error().str());

  rt::Cache cache;
  rt::ThreadPool pool(1);
  std::vector<std::shared_ptr<rt::HostModule>> modules;
  for (const std::string &name : program->kernels) {
    auto kernel = mlir::SymbolTable::lookupNearestSymbolFrom<tile::KernelOp>(
        def, mlir::StringAttr::get(&compilation.getContext(), name));
    auto artifact = compilation.print(kernel, *Target::parse("cpu"));
    EXPECT(artifact.ok(), "{}", artifact.error().str());
    auto compiled = cache.get(*rt::createCompiler("cpu"), *artifact);
    EXPECT(compiled.ok(), "{}", compiled.error().str());
    auto loaded = rt::HostModule::load(*compiled);
    EXPECT(loaded.ok(), "{}", loaded.error().str());
    modules.push_back(*loaded);
  }

  constexpr int64_t rows = 5, heads = 3, dim = 16;
  alignas(16) static uint16_t q[rows * heads * dim], o[rows * heads * dim]; // zeros: all scores are equal
  alignas(16) static float lse[heads * rows];
  const int64_t shape[] = {1, rows, heads, dim}, statistics[] = {1, heads, rows};
  rt::TensorView tensors[] = {{q, rt::Dtype::BF16, shape, {}},
                              {q, rt::Dtype::BF16, shape, {}},
                              {q, rt::Dtype::BF16, shape, {}},
                              {o, rt::Dtype::BF16, shape, {}},
                              {lse, rt::Dtype::F32, statistics, {}}};
  std::vector<int64_t> values(code->sizes().size());
  for (size_t i = 0; i < code->given(); ++i)
    values[i] = code->sizes()[i] == "batch" ? 1 : code->sizes()[i] == "multiprocessors" ? pool.size() : rows;
  code->computeSizes(values.data());
  EXPECT(code->workspaceBytes(values.data()) == 0);
  std::vector<rt::BoundStep> steps;
  rt::Status bound = code->bind(tensors, nullptr, values.data(), steps);
  EXPECT(bound.ok(), "{}", bound.error().str());
  EXPECT(steps[1].blocks == 3 && steps[1].values[1] == rows && steps[1].values[2] == 2 * rows);
  for (size_t i = 0; i < steps.size(); ++i) {
    rt::Status ran = rt::run(*modules[static_cast<size_t>(program->steps[i].kernel)], pool, steps[i].pointers.data(),
                             steps[i].blocks);
    EXPECT(ran.ok(), "{}", ran.error().str());
  }
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t row = 0; row < rows; ++row) {
      double expected = row == 0 ? 0 : std::log(double(row + 1)); // of the first row log(1) is 0 in any case
      EXPECT(std::fabs(lse[h * rows + row] - expected) < 1e-6, "{} {}: {}", h, row, lse[h * rows + row]);
    }
  // Now without attention: the added kernel alone, over what is no 0.
  for (float &value : lse)
    value = 7;
  EXPECT(rt::run(*modules[1], pool, steps[1].pointers.data(), steps[1].blocks).ok());
  for (int64_t i = 0; i < heads * rows; ++i)
    EXPECT(lse[i] == (i % rows ? 7 : 0), "{}: {}", i, lse[i]);
  fmt::print("an added kernel runs\n");
}
