// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Questions.h"
#include "attn/Inspect/Equivalence.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace attn;
namespace cl = llvm::cl;

int attn::equiv(int argc, char **argv) {
  cl::opt<std::string> first(cl::Positional, cl::desc("<mask>"), cl::Required);
  cl::opt<std::string> second(cl::Positional, cl::desc("<mask>"), cl::Required);
  cl::ParseCommandLineOptions(argc, argv, "whether two masks are the same set, for all lengths\n");
  rt::Result<MaskEquivalence> compared = compareMaskTexts(first, second);
  if (!compared) {
    llvm::errs() << "error: " << compared.error().str() << "\n";
    return 3;
  }
  llvm::outs() << compared->text();
  switch (compared->verdict) {
  case MaskEquivalence::Equal:
    return 0;
  case MaskEquivalence::Different:
    return 1;
  case MaskEquivalence::Unknown:
    break;
  }
  return 2;
}
