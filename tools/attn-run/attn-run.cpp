// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a problem's kernel on .npy files or made-up inputs, and holds the results
// against the reference.
//
#include "Report.h"
#include "attn/API/RunTensors.h"
#include "attn/Reference/Difference.h"
#include "attn/Reference/Inputs.h"
#include "attn/Reference/Npy.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace attn;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<problem.mlir>"), cl::Required);
static cl::opt<std::string> problemName("problem", cl::desc("which problem or backward pass, if the file has several"));
static cl::opt<std::string> targetText("target",
                                       cl::desc("`cpu`, `sm_90a`, `sm_80` or `sm_80:<chip>`; default: the GPU if there is "
                                                "one, else cpu"));
static cl::list<std::string> argFiles("arg", cl::desc("an input: NAME=FILE.npy, float32 or int32"));
static cl::list<std::string> resultFiles("result", cl::desc("where a result goes: NAME=FILE.npy"));
static cl::opt<uint64_t> seed("seed", cl::desc("of inputs that no file gives"), cl::init(1));
static cl::opt<bool> check("check", cl::desc("compare with the reference; exit 1 past the tolerance"));
static cl::opt<int64_t> batch("batch", cl::desc("sequences (dense layouts)"), cl::init(2));
static cl::opt<int64_t> seqlenQ("seqlen-q", cl::desc("query rows of a sequence (dense layouts)"), cl::init(256));
static cl::opt<int64_t> seqlenKv("seqlen-kv", cl::desc("keys of a sequence (dense layouts); default: --seqlen-q"),
                                 cl::init(-1));
static cl::list<int64_t> lengthsQ("lengths-q", cl::CommaSeparated, cl::desc("lengths of packed sequences"));
static cl::list<int64_t> lengthsKv("lengths-kv", cl::CommaSeparated, cl::desc("likewise, keys; default: --lengths-q"));
static cl::opt<int64_t> padding("padding", cl::desc("padded layouts: rows of padding around sequences"), cl::init(5));

static int fail(const rt::Error &error) {
  llvm::errs() << "error: " << error.str() << "\n";
  return 1;
}
static int fail(llvm::Error error) { return fail(rt::Error{llvm::toString(std::move(error))}); }

/// `NAME=FILE`
static std::pair<llvm::StringRef, llvm::StringRef> nameAndFile(const std::string &text) {
  return llvm::StringRef(text).split('=');
}

static llvm::Error loadInputs(Computation computation, reference::Tensors &tensors) {
  std::vector<ProblemTensor> list = tensorsOf(computation);
  for (const std::string &text : argFiles) {
    auto [name, file] = nameAndFile(text);
    auto tensor =
        llvm::find_if(list, [&, name = name](auto &t) { return t.name == name && t.role != ProblemTensor::Result; });
    if (tensor == list.end() || file.empty())
      return llvm::createStringError("expected --arg=NAME=FILE with an input of @" + computation.getName() +
                                     ", got: " + text);
    bool array = tensor->role == ProblemTensor::Array;
    bool integers = tensor->element == ProblemTensor::Int32;
    auto values = reference::readNpy(file, integers ? reference::Dtype::I32 : reference::Dtype::F32);
    if (!values)
      return values.takeError();
    bool keeps = array || tensor->element == ProblemTensor::Float32;
    tensors[name] = keeps ? std::move(*values) : values->to(reference::dtypeOf(computation.problem));
  }
  return llvm::Error::success();
}

/// Before anything runs: results that exist, each to a file of its own, in folders that can be written.
static std::optional<rt::Error> checkResultFiles(Computation computation, const reference::Tensors &results) {
  llvm::StringSet<> paths;
  for (const std::string &text : resultFiles) {
    auto [name, path] = nameAndFile(text);
    if (!results.count(name) || path.empty())
      return rt::Error{"expected --result=NAME=FILE with a result of @" + computation.getName().str() +
                       ", got: " + text};
    if (!paths.insert(path).second)
      return rt::Error{"expected a file of its own for each result, got twice: " + path.str()};
    llvm::StringRef folder = llvm::sys::path::parent_path(path);
    if (auto code = llvm::sys::fs::access(folder.empty() ? "." : folder, llvm::sys::fs::AccessMode::Write))
      return rt::Error{"`" + path.str() + "`: cannot write the file: " + code.message()};
  }
  return std::nullopt;
}

static reference::InputSizes sizesAsked() {
  reference::InputSizes sizes;
  sizes.batch = batch;
  sizes.seqlenQ = seqlenQ;
  sizes.seqlenKv = seqlenKv < 0 ? seqlenQ : seqlenKv;
  sizes.lengthsQ.assign(lengthsQ.begin(), lengthsQ.end());
  if (sizes.lengthsQ.empty())
    sizes.lengthsQ = {100, 0, 37, 219}; // an empty one, too
  sizes.lengthsKv.assign(lengthsKv.begin(), lengthsKv.end());
  if (sizes.lengthsKv.empty())
    sizes.lengthsKv = sizes.lengthsQ;
  sizes.padding = padding;
  return sizes;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "runs an attention problem\n");
  rt::Result<Target> parsed = Target::parse(targetText);
  if (!parsed)
    return fail(parsed.error());
  const Target &target = *parsed;
  std::vector<int64_t> given = {batch, seqlenQ, padding};
  if (seqlenKv.getNumOccurrences())
    given.push_back(seqlenKv);
  given.insert(given.end(), lengthsQ.begin(), lengthsQ.end());
  given.insert(given.end(), lengthsKv.begin(), lengthsKv.end());
  for (int64_t size : given)
    if (size < 0 || size > 1 << 24)
      return fail({"expected sizes from 0 to 2^24, got: " + std::to_string(size)});
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

  reference::Tensors inputs;
  if (llvm::Error error = loadInputs(*problem, inputs))
    return fail(std::move(error));
  if (llvm::Error error = reference::addMissingInputs(*problem, sizesAsked(), seed, inputs))
    return fail(std::move(error));
  auto sizes = reference::checkTensors(*problem, inputs);
  if (!sizes)
    return fail(sizes.takeError());
  reference::Tensors results = reference::poisonedResults(*problem, *sizes);
  if (std::optional<rt::Error> error = checkResultFiles(*problem, results))
    return fail(*error);

  auto kernel = Kernel::create((*file)->getBuffer(), problem->getName(), target);
  if (!kernel)
    return fail(kernel.error());
  reportProblem(llvm::outs(), *problem, target, **kernel, inputs, *sizes);
  if (rt::Status ran = runTensors(**kernel, inputs, results); !ran)
    return fail(ran.error());
  for (const std::string &text : resultFiles) {
    auto [name, path] = nameAndFile(text);
    if (llvm::Error error = reference::writeNpy(path, results[name]))
      return fail(std::move(error));
  }
  return check ? !reportError(llvm::outs(), *problem, inputs, results) : 0;
}
