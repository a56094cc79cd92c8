// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints the source of a problem's (or kernel's) program; with --compile also
// compiles it and prints what the compiler says of its resources.
//
#include "attn-rt/Compiler.h"
#include "attn-rt/Driver.h"
#include "attn/API/BuildFitting.h"
#include "attn/Dialect/Program/IR/PlainData.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace attn;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<problem.mlir>"), cl::init("-"));
static cl::opt<std::string> targetText("target", cl::desc("`cpu`, `sm_90a`, `sm_80` or `sm_80:<chip>`"),
                                       cl::init("sm_80"));
static cl::opt<bool> compile("compile", cl::desc("compile too, and print the resource report"));
static cl::opt<bool> quiet("quiet", cl::desc("do not print the source"));
static cl::opt<bool> steps("program",
                           cl::desc("print how launches run the kernels (attn-rt/Program.h), as JSON, not the source"));

static int fail(const rt::Error &error) {
  llvm::errs() << "error: " << error.str() << "\n";
  return 1;
}

static void printReport(const rt::Artifact &artifact, const rt::ResourceReport &report) {
  llvm::outs() << "// " << artifact.name << " " << artifact.target << ": " << report.str() << ", " << artifact.smemBytes
               << " bytes dynamic shared memory\n";
}

/// The kernels of a module as text, compiled too if asked for. Problems are
/// lowered first; kernels are taken as they are.
static rt::Result<std::vector<rt::Artifact>> translate(Compilation &compilation, mlir::ModuleOp module,
                                                       llvm::StringRef text, const Target &target,
                                                       std::vector<rt::ResourceReport> &reports) {
  std::vector<rt::Artifact> artifacts;
  auto build = [](const rt::Artifact &artifact) { return rt::createCompiler(artifact.target)->compile(artifact); };
  for (mlir::Operation *op : programsOf(module)) {
    llvm::StringRef name = mlir::SymbolTable::getSymbolName(op).getValue();
    auto program = [&](int fallback) { return compilation.compile(text, name, target, fallback, inputFile); };
    if (compile) {
      auto built = buildFitting(program, build);
      if (!built)
        return built.error();
      llvm::append_range(artifacts, built->program.kernels);
      for (const rt::CompileOutput &output : built->kernels)
        reports.push_back(output.report);
    } else {
      rt::Result<Program> made = program(0);
      if (!made)
        return made.error();
      llvm::append_range(artifacts, made->kernels);
    }
  }
  for (auto kernel : module.getOps<tile::KernelOp>()) {
    if (rt::Status good = compilation.check(kernel, target); !good)
      return good.error();
    rt::Result<rt::Artifact> artifact = compilation.print(kernel, target);
    if (!artifact)
      return artifact.error();
    if (compile) {
      auto output = build(*artifact);
      if (!output)
        return output.error();
      reports.push_back(output->report);
    }
    artifacts.push_back(std::move(*artifact));
  }
  if (artifacts.empty())
    return rt::Error{
        "expected an `attn.problem`, `attn.backward`, `attn.segments` or `tile.kernel` in the module, got: none"};
  return artifacts;
}

/// The programs of a module as plain data. Problems are lowered first; programs are taken as they are.
static rt::Result<std::vector<rt::Program>> translatePrograms(Compilation &compilation, mlir::ModuleOp module,
                                                              llvm::StringRef text, const Target &target) {
  std::vector<rt::Program> programs;
  for (mlir::Operation *op : programsOf(module)) {
    llvm::StringRef name = mlir::SymbolTable::getSymbolName(op).getValue();
    rt::Result<Program> made = compilation.compile(text, name, target, /*fallback=*/0, inputFile);
    if (!made)
      return made.error();
    programs.push_back(std::move(made->plan));
  }
  for (auto program : module.getOps<program::DefOp>())
    programs.push_back(toProgram(program, program.getSymName()));
  if (programs.empty())
    return rt::Error{
        "expected an `attn.problem`, `attn.backward`, `attn.segments` or `program.def` in the module, got: none"};
  return programs;
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
  llvm::StringRef text = (*file)->getBuffer();
  auto module = compilation.parse(text, inputFile);
  if (!module)
    return fail(module.error());
  if (steps) {
    auto programs = translatePrograms(compilation, **module, text, *target);
    if (!programs)
      return fail(programs.error());
    llvm::outs() << "[\n";
    llvm::interleave(
        *programs, llvm::outs(), [](const rt::Program &program) { llvm::outs() << program.toJson(); }, ",\n");
    llvm::outs() << "]\n";
    return 0;
  }
  std::vector<rt::ResourceReport> reports;
  auto artifacts = translate(compilation, **module, text, *target, reports);
  if (!artifacts)
    return fail(artifacts.error());
  for (auto [i, artifact] : llvm::enumerate(*artifacts)) { // published when all of it could be printed
    if (!quiet)
      llvm::outs() << artifact.source;
    if (compile)
      printReport(artifact, reports[i]);
  }
  return 0;
}
