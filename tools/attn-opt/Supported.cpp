// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Questions.h"
#include "attn/API/SourceText.h"
#include "attn/Inspect/Support.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace attn;
namespace cl = llvm::cl;

int attn::supported(int argc, char **argv) {
  cl::opt<std::string> file{cl::Positional, cl::desc("<problems.mlir>"), cl::init("-")};
  cl::list<std::string> targetTexts{"target", cl::CommaSeparated,
                                    cl::desc("which to ask for; default: cpu,sm_80,sm_90a")};
  cl::ParseCommandLineOptions(argc, argv, "which targets have kernels for problems, and why others have none\n");
  std::vector<std::string> asked(targetTexts.begin(), targetTexts.end());
  if (asked.empty())
    asked = {"cpu", "sm_80", "sm_90a"};
  SmallVector<Target> targets;
  for (const std::string &text : asked) {
    if (text.empty()) {
      llvm::errs() << "error: expected targets with --target, got none\n";
      return 2;
    }
    rt::Result<Target> target = Target::parse(text);
    if (!target) {
      llvm::errs() << "error: " << target.error().str() << "\n";
      return 2;
    }
    targets.push_back(*target);
  }
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(file);
  if (!buffer) {
    llvm::errs() << "error: cannot read `" << file << "`: " << buffer.getError().message() << "\n";
    return 2;
  }
  Compilation dialects;
  MLIRContext context(dialects.getContext().getDialectRegistry());
  context.loadAllAvailableDialects();
  llvm::SourceMgr sources;
  llvm::MemoryBufferRef text = **buffer;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  ScopedDiagnosticHandler cut(&context, [&](Diagnostic &diagnostic) { return printCut(diagnostic, text); });
  // What an attribute's own verifier refuses cannot be read at all: its message is the answer.
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> module;
  if (succeeded(checkNesting(context, text)))
    module = parseSourceFile<ModuleOp>(sources, config);
  if (!module)
    return 1;
  SmallVector<Operation *> passes = programsOf(*module);
  if (passes.empty()) {
    llvm::errs() << "error: expected an `attn.problem`, `attn.backward` or `attn.segments` in the module, got: none\n";
    return 2;
  }
  bool all = true;
  std::string before; // the answer of the last target that has none
  for (auto [i, answer] : llvm::enumerate(supportOf(*module, passes, targets))) {
    if (i % targets.size() == 0) {
      llvm::outs() << "@" << answer.name << "\n";
      before.clear();
    }
    llvm::outs() << "  " << llvm::left_justify(answer.target.str() + " ", 8)
                 << (answer.reason ? "no: " + *answer.reason : "yes") << "\n";
    if (!answer.reason)
      continue;
    all = false;
    std::string near = answer.nearest.empty() ? "no single change, nor two, of what is given" : answer.nearest;
    StringRef indent = "          nearest: ";
    for (StringRef line : llvm::split(near, '\n')) {
      if (near != before)
        llvm::outs() << indent << line << "\n";
      indent = "                   ";
    }
    before = near;
  }
  return !all;
}
