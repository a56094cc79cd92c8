// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mlir-opt for attnc: our dialects and passes, `--attn-pipeline` for all of them
// in order. `--explain`, `--supported` or `--equiv` asks it something else.
//
#include "Questions.h"
#include "attn/API/Pipeline.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

namespace attn::test {
void registerTestMaskLaws();
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
  // Dumps say `%full_end`, as the printed kernel does, and not `%37`.
  std::vector<char *> args(argv, argv + argc);
  char names[] = "--mlir-use-nameloc-as-prefix";
  if (argc > 1)
    args.insert(args.begin() + 1, names);
  return mlir::asMainReturnCode(mlir::MlirOptMain(args.size(), args.data(), "attnc optimizer driver\n", registry));
}
