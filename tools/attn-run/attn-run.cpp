// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the kernels of a problem, of a program or of an op around problems on .npy files or made-up inputs, and holds
// the results against the reference.
//
#include "../common/InputOptions.h"
#include "../common/OptionChecks.h"
#include "Report.h"
#include "attn/API/RunTensors.h"
#include "attn/Reference/Computations.h"
#include "attn/Reference/Difference.h"
#include "attn/Reference/Npy.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace attn;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<problem.mlir>"), cl::Required);
static cl::opt<std::string> problemName("problem",
                                        cl::desc("which problem, backward pass, program or other op, if the file has "
                                                 "several"));
static cl::opt<std::string>
    targetText("target", cl::desc("`cpu`, `sm_90a`, `sm_80` or `sm_80:<chip>`; default: the GPU if there is "
                                  "one, else cpu"));
static cl::list<std::string> resultFiles("result", cl::desc("where a result goes: NAME=FILE.npy"));
static cl::opt<bool> check("check", cl::desc("compare with the reference; exit 1 past the tolerance"));
static cl::opt<bool>
    onlyReference("reference", cl::desc("give the reference's results, as float64, and run no kernel; of programs and "
                                        "ops that are no problems, files may be float64, and no input is rounded"));
static InputOptions inputOptions;

static int fail(const rt::Error &error) {
  llvm::errs() << "error: " << error.str() << "\n";
  return 1;
}
static int fail(llvm::Error error) { return fail(rt::Error{llvm::toString(std::move(error))}); }

/// Before anything runs: results that exist, each once, to a file of its own that is no input and can be written.
static std::optional<rt::Error> checkResultFiles(llvm::StringRef pass, const reference::Tensors &results) {
  llvm::SmallVector<llvm::StringRef> names, paths, inputs = inputOptions.getFiles();
  for (const std::string &text : resultFiles) {
    auto [name, path] = nameAndFile(text);
    if (!results.count(name) || path.empty())
      return rt::Error{"expected --result=NAME=FILE with a result of @" + pass.str() + ", got: " + text};
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

static llvm::Error writeResults(const reference::Tensors &results) {
  for (const std::string &text : resultFiles) {
    auto [name, path] = nameAndFile(text);
    if (llvm::Error error = reference::writeNpy(path, results.find(name)->second))
      return error;
  }
  return llvm::Error::success();
}

/// What the reference makes of a problem or its backward pass.
static llvm::Expected<reference::Tensors> expectedOf(Computation computation, const reference::Tensors &inputs) {
  if (computation.backward)
    return reference::interpret(computation.backward, inputs);
  llvm::Expected<reference::Outputs> outputs = reference::interpret(computation.problem, inputs);
  if (!outputs)
    return outputs.takeError();
  reference::Tensors results;
  results["o"] = std::move(outputs->o);
  if (computation.problem.hasLse())
    results["lse"] = std::move(outputs->lse);
  if (computation.problem.getSegments())
    results["status"] = std::move(outputs->status);
  return results;
}

/// What the reference makes of a program or an op around problems. Beside kernels, calls read what kernels would.
static llvm::Expected<reference::Tensors> expectedOf(mlir::Operation *op, const reference::ProgramTensors &tensors) {
  if (auto program = dyn_cast<ProgramOp>(op))
    return reference::interpret(program, tensors.inputs,
                                onlyReference ? reference::Between::Float64 : reference::Between::Rounded);
  if (auto rows = dyn_cast<GatherRowsOp>(op))
    return reference::interpret(rows, tensors.inputs);
  return reference::interpret(cast<ComputationInterface>(op), tensors.inputs);
}

/// From which windows `cu_seqlens_compressed` follows, if it does.
static std::optional<reference::Windows> windowsOf(mlir::Operation *op) {
  if (auto select = dyn_cast<SelectOp>(op); select && select.getScorer() != BlockScorer::max)
    return reference::Windows{select.getWindowLength(), select.getWindowStride()};
  if (auto backward = dyn_cast<CompressBackwardOp>(op))
    return reference::Windows{int64_t(backward.getCompressOp().getLength()),
                              int64_t(backward.getCompressOp().getStride())};
  return std::nullopt;
}

static int runProblem(Computation problem, llvm::StringRef text, const Target &target) {
  llvm::Expected<reference::Tensors> inputs = inputOptions.inputsOf(problem);
  if (!inputs)
    return fail(inputs.takeError());
  auto sizes = reference::checkTensors(problem, *inputs);
  if (!sizes)
    return fail(sizes.takeError());
  reference::Tensors results = reference::poisonedResults(problem, *sizes);
  if (std::optional<rt::Error> error = checkResultFiles(problem.getName(), results))
    return fail(*error);
  if (onlyReference) {
    llvm::Expected<reference::Tensors> expected = expectedOf(problem, *inputs);
    if (!expected)
      return fail(expected.takeError());
    llvm::Error error = writeResults(*expected);
    return error ? fail(std::move(error)) : 0;
  }

  auto kernel = Kernel::create(text, problem.getName(), target);
  if (!kernel)
    return fail(kernel.error());
  kernel = specialize(**kernel, *inputs);
  if (!kernel)
    return fail(kernel.error());
  reportProblem(llvm::outs(), problem, target, **kernel, *inputs, *sizes);
  if (rt::Status ran = runTensors(**kernel, *inputs, results); !ran)
    return fail(ran.error());
  if (llvm::Error error = writeResults(results))
    return fail(std::move(error));
  reportStatus(llvm::outs(), results);
  return check ? !reportError(llvm::outs(), problem, *inputs, results) : 0;
}

static int runOp(mlir::Operation *op, llvm::StringRef text, const Target &target) {
  llvm::StringRef name = mlir::SymbolTable::getSymbolName(op).getValue();
  rt::Result<rt::Program> signature = signatureOf(op);
  if (!signature)
    return fail(signature.error());
  llvm::Expected<reference::InputRequest> request = inputOptions.requestFor(name, *signature, onlyReference);
  if (!request)
    return fail(request.takeError());
  llvm::Expected<reference::ProgramTensors> tensors =
      reference::tensorsOf(*signature, std::move(*request), windowsOf(op));
  if (!tensors)
    return fail(tensors.takeError());
  if (std::optional<rt::Error> error = checkResultFiles(name, tensors->results))
    return fail(*error);
  reference::Tensors expected;
  if (onlyReference || check) {
    llvm::Expected<reference::Tensors> found = expectedOf(op, *tensors);
    if (!found)
      return fail(found.takeError());
    expected = std::move(*found);
    for (const auto &[result, tensor] : tensors->results)
      if (llvm::ArrayRef<int64_t> shape = expected.find(result)->second.shape(); shape != tensor.shape())
        return fail({"expected shape " + reference::shapeText(tensor.shape()) + " for `" + result.str() +
                     "`, as the signature of @" + name.str() + " has it, got: " + reference::shapeText(shape) +
                     " of the reference"});
  }
  if (onlyReference) {
    llvm::Error error = writeResults(expected);
    return error ? fail(std::move(error)) : 0;
  }

  auto kernel = Kernel::create(text, name, target);
  if (!kernel)
    return fail(kernel.error());
  reportOp(llvm::outs(), op, target, **kernel, tensors->inputs);
  if (rt::Status ran = runTensors(**kernel, tensors->inputs, tensors->results); !ran)
    return fail(ran.error());
  if (llvm::Error error = writeResults(tensors->results))
    return fail(std::move(error));
  return check ? !reportError(llvm::outs(), op, *signature, expected, tensors->results) : 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "runs an attention problem or program\n");
  rt::Result<Target> parsed = Target::parse(targetText);
  if (!parsed)
    return fail(parsed.error());
  const Target &target = *parsed;
  if (llvm::Error error = inputOptions.check())
    return fail(std::move(error));
  for (auto [option, given] :
       {std::pair("--check", check.getNumOccurrences()), {"--target", targetText.getNumOccurrences()}})
    if (onlyReference && given)
      return fail({"expected kernels to run with " + std::string(option) + ", got: --reference"});
  auto file = llvm::MemoryBuffer::getFileOrSTDIN(inputFile);
  if (!file)
    return fail({"cannot read `" + inputFile + "`: " + file.getError().message()});
  Compilation compilation;
  auto module = compilation.parse((*file)->getBuffer(), inputFile);
  if (!module)
    return fail(module.error());
  rt::Result<mlir::Operation *> found = findProgram(**module, problemName);
  if (!found)
    return fail(found.error());
  if (isa<ProgramOp, GatherRowsOp, ComputationInterface>(*found))
    return runOp(*found, (*file)->getBuffer(), target);
  rt::Result<Computation> problem = findComputation(**module, problemName);
  if (!problem)
    return fail(problem.error());
  return runProblem(*problem, (*file)->getBuffer(), target);
}
