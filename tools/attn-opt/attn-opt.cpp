// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mlir-opt for attnc: our dialects and passes, `--attn-pipeline` for all of them
// in order. `--explain`, `--supported` or `--equiv` asks it something else.
//
#include "Questions.h"
#include "attn/API/Pipeline.h"
#include "attn/API/SourceText.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

namespace attn::test {
void registerTestMaskLaws();
void registerTestAddKernel();
void registerTestDqWaits();
void registerTestPlans();
void registerTestShardings();
void registerTestTileOps(mlir::DialectRegistry &registry);
} // namespace attn::test

namespace {
/// Errors in long lines of a text show only a part of the line. mlir-opt makes the context and its handler of
/// diagnostics itself; the parser then loads dialects, and a handler that comes with them is asked first.
class CutLongLines : public mlir::DialectExtensionBase {
public:
  explicit CutLongLines(llvm::MemoryBufferRef text) : DialectExtensionBase({}), text(text) {}

  void apply(mlir::MLIRContext *context, llvm::MutableArrayRef<mlir::Dialect *> dialects) const final {
    if (dialects.front()->getNamespace() != "builtin") // the context's own
      context->getDiagEngine().registerHandler(
          [text = text](mlir::Diagnostic &diagnostic) { return attn::printCut(diagnostic, text); });
  }
  std::unique_ptr<DialectExtensionBase> clone() const final { return std::make_unique<CutLongLines>(text); }

private:
  llvm::MemoryBufferRef text;
};
} // namespace

/// As mlir-opt's main, with limits to what its parser is given and to what its errors show.
static llvm::LogicalResult optimize(int argc, char **argv, mlir::DialectRegistry &registry) {
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "attnc optimizer driver\n", registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::MlirOptMain(argc, argv, input, output, registry);
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file = mlir::openInputFile(input, &error);
  std::unique_ptr<llvm::ToolOutputFile> result = file ? mlir::openOutputFile(output, &error) : nullptr;
  if (!result) {
    llvm::errs() << error << "\n";
    return llvm::failure();
  }
  llvm::MemoryBufferRef text = *file;
  {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) { attn::printDiagnostic(d, text); });
    if (failed(attn::checkNesting(context, text)))
      return llvm::failure();
  }
  if (!config.shouldVerifyDiagnostics())
    registry.addExtension(mlir::TypeID::get<CutLongLines>(), std::make_unique<CutLongLines>(text));
  if (failed(mlir::MlirOptMain(result->os(), std::move(file), registry, config)))
    return llvm::failure();
  result->keep();
  return llvm::success();
}

int main(int argc, char **argv) {
  const std::pair<llvm::StringRef, int (*)(int, char **)> questions[] = {
      {"--explain", attn::explain}, {"--supported", attn::supported}, {"--equiv", attn::equiv}};
  for (auto [option, answer] : questions)
    if (char **asked = std::find(argv + 1, argv + argc, option); asked != argv + argc) {
      std::copy(asked + 1, argv + argc, asked);
      return answer(argc - 1, argv);
    }
  mlir::DialectRegistry registry;
  attn::registerDialects(registry);
  attn::registerPasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  attn::test::registerTestMaskLaws();
  attn::test::registerTestAddKernel();
  attn::test::registerTestDqWaits();
  attn::test::registerTestPlans();
  attn::test::registerTestShardings();
  attn::test::registerTestTileOps(registry);
  // Dumps say `%full_end`, as the printed kernel does, and not `%37`. Errors do not show an operation in generic form.
  std::vector<char *> args(argv, argv + argc);
  char names[] = "--mlir-use-nameloc-as-prefix", noDumps[] = "--mlir-print-op-on-diagnostic=false";
  for (char *option : {names, noDumps}) {
    llvm::StringRef name = llvm::StringRef(option).split('=').first;
    if (argc > 1 && llvm::none_of(args, [&](char *given) { return llvm::StringRef(given).split('=').first == name; }))
      args.insert(args.begin() + 1, option);
  }
  argc = args.size();
  char **all = args.data();
  llvm::InitLLVM init(argc, all);
  return mlir::asMainReturnCode(optimize(argc, all, registry));
}
