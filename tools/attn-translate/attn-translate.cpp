// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints the source of a problem's (or kernel's) program; with --compile also
// compiles it and prints what the compiler says of its resources.
//
#include "attn-rt/Compiler.h"
#include "attn-rt/Driver.h"
#include "attn/API/Compile.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace attn;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<problem.mlir>"), cl::init("-"));
static cl::opt<std::string> targetText("target", cl::desc("`cpu`, `sm_80` or `sm_80:<chip>`"), cl::init("sm_80"));
static cl::opt<bool> compile("compile", cl::desc("compile too, and print the resource report"));
static cl::opt<bool> quiet("quiet", cl::desc("do not print the source"));

static int fail(const rt::Error &error) {
  llvm::errs() << "error: " << error.str() << "\n";
  return 1;
}

static int publish(const rt::Artifact &artifact) {
  if (!quiet)
    llvm::outs() << artifact.source;
  if (!compile)
    return 0;
  rt::Result<rt::CompileOutput> output = rt::createCompiler(artifact.target)->compile(artifact);
  if (!output)
    return fail(output.error());
  llvm::outs() << "// " << artifact.name << " " << artifact.target << ": " << output->report.str() << ", "
               << artifact.smemBytes << " bytes dynamic shared memory\n";
  return 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "attnc source printer\n");
  rt::Result<Target> target = Target::parse(targetText);
  if (!target)
    return fail(target.error());
  auto file = llvm::MemoryBuffer::getFileOrSTDIN(inputFile);
  if (!file)
    return fail({"cannot read `" + inputFile + "`: " + file.getError().message()});
  Compilation compilation;
  auto module = compilation.parse((*file)->getBuffer(), inputFile);
  if (!module)
    return fail(module.error());
  if (!(**module).getOps<ProblemOp>().empty())
    if (rt::Status lowered = compilation.lower(**module, *target); !lowered)
      return fail(lowered.error());
  // Text is published when all of it could be printed.
  std::vector<rt::Artifact> artifacts;
  for (auto kernel : (**module).getOps<tile::KernelOp>()) {
    rt::Result<rt::Artifact> artifact = compilation.print(kernel, *target);
    if (!artifact)
      return fail(artifact.error());
    artifacts.push_back(std::move(*artifact));
  }
  int status = 0;
  for (const rt::Artifact &artifact : artifacts)
    status |= publish(artifact);
  return status;
}
