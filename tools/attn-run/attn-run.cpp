// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a problem's kernel on .npy files or made-up inputs, and holds the results
// against the reference.
//
#include "../common/InputOptions.h"
#include "../common/OptionChecks.h"
#include "Report.h"
#include "attn/API/RunTensors.h"
#include "attn/Reference/Difference.h"
#include "attn/Reference/Npy.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace attn;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<problem.mlir>"), cl::Required);
static cl::opt<std::string> problemName("problem", cl::desc("which problem or backward pass, if the file has several"));
static cl::opt<std::string>
    targetText("target", cl::desc("`cpu`, `sm_90a`, `sm_80` or `sm_80:<chip>`; default: the GPU if there is "
                                  "one, else cpu"));
static cl::list<std::string> resultFiles("result", cl::desc("where a result goes: NAME=FILE.npy"));
static cl::opt<bool> check("check", cl::desc("compare with the reference; exit 1 past the tolerance"));
static InputOptions inputOptions;

static int fail(const rt::Error &error) {
  llvm::errs() << "error: " << error.str() << "\n";
  return 1;
}
static int fail(llvm::Error error) { return fail(rt::Error{llvm::toString(std::move(error))}); }

/// Before anything runs: results that exist, each once, to a file of its own that is no input and can be written.
static std::optional<rt::Error> checkResultFiles(Computation computation, const reference::Tensors &results) {
  llvm::SmallVector<llvm::StringRef> names, paths, inputs = inputOptions.getFiles();
  for (const std::string &text : resultFiles) {
    auto [name, path] = nameAndFile(text);
    if (!results.count(name) || path.empty())
      return rt::Error{"expected --result=NAME=FILE with a result of @" + computation.getName().str() +
                       ", got: " + text};
    if (llvm::is_contained(names, name))
      return rt::Error{"expected each result once, got: --result=" + text + " as well"};
    names.push_back(name), paths.push_back(path);
    if (llvm::Error bad = reference::checkWritable(path))
      return rt::Error{llvm::toString(std::move(bad))};
  }
  if (inputFile != "-")
    inputs.push_back(inputFile);
  if (llvm::Error bad = checkResultPaths(inputs, paths))
    return rt::Error{llvm::toString(std::move(bad))};
  return std::nullopt;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "runs an attention problem\n");
  rt::Result<Target> parsed = Target::parse(targetText);
  if (!parsed)
    return fail(parsed.error());
  const Target &target = *parsed;
  if (llvm::Error error = inputOptions.check())
    return fail(std::move(error));
  auto file = llvm::MemoryBuffer::getFileOrSTDIN(inputFile);
  if (!file)
    return fail({"cannot read `" + inputFile + "`: " + file.getError().message()});
  Compilation compilation;
  auto module = compilation.parse((*file)->getBuffer(), inputFile);
  if (!module)
    return fail(module.error());
  auto problem = findComputation(**module, problemName);
  if (!problem)
    return fail(problem.error());

  llvm::Expected<reference::Tensors> inputs = inputOptions.inputsOf(*problem);
  if (!inputs)
    return fail(inputs.takeError());
  auto sizes = reference::checkTensors(*problem, *inputs);
  if (!sizes)
    return fail(sizes.takeError());
  reference::Tensors results = reference::poisonedResults(*problem, *sizes);
  if (std::optional<rt::Error> error = checkResultFiles(*problem, results))
    return fail(*error);

  auto kernel = Kernel::create((*file)->getBuffer(), problem->getName(), target);
  if (!kernel)
    return fail(kernel.error());
  kernel = specialize(**kernel, *inputs);
  if (!kernel)
    return fail(kernel.error());
  reportProblem(llvm::outs(), *problem, target, **kernel, *inputs, *sizes);
  if (rt::Status ran = runTensors(**kernel, *inputs, results); !ran)
    return fail(ran.error());
  for (const std::string &text : resultFiles) {
    auto [name, path] = nameAndFile(text);
    if (llvm::Error error = reference::writeNpy(path, results[name]))
      return fail(std::move(error));
  }
  reportStatus(llvm::outs(), results);
  return check ? !reportError(llvm::outs(), *problem, *inputs, results) : 0;
}
