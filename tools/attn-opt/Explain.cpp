// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Inspect/Explain.h"
#include "../common/InputOptions.h"
#include "../common/OptionChecks.h"
#include "Questions.h"
#include "attn/Inspect/ExplainPlans.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace attn;
namespace cl = llvm::cl;

namespace {
struct Options {
  cl::opt<std::string> file{cl::Positional, cl::desc("<problem.mlir>"), cl::init("-")};
  cl::opt<std::string> problem{"problem", cl::desc("which problem, if the file has several")};
  cl::opt<std::string> target{"target", cl::desc("whose tile sizes: `cpu`, `sm_80`, `sm_80:<chip>` or `sm_90a`"),
                              cl::init("sm_90a")};
  cl::opt<std::string> tile{"tile", cl::desc("other tile sizes: ROWSxKEYS")};
  cl::opt<int64_t> sequence{"sequence", cl::desc("which sequence to draw"), cl::init(0)};
  cl::opt<int64_t> head{"head", cl::desc("as which query head"), cl::init(0)};
  cl::opt<std::string> svg{"svg", cl::desc("a file for the drawing")};
  cl::opt<double> tflops{"tflops", cl::desc("what products reach, in 10^12 operations a second"), cl::init(786)};
  cl::opt<double> gbps{"gbps", cl::desc("what memory reaches, in 10^9 bytes a second"), cl::init(4584)};
  cl::opt<int64_t> ranks{"ranks", cl::desc("compares context-parallel plans of so many ranks instead"), cl::init(0)};
  cl::opt<double> linkGbps{"link-gbps", cl::desc("what a link reaches each way, in 10^9 bytes a second (of plans)"),
                           cl::init(plan::Rates().linkGbps)};
  cl::opt<double> messageUs{"message-us", cl::desc("how long a message takes to start, in microseconds (of plans)"),
                            cl::init(plan::Rates().messageUs)};
  InputOptions inputs;
};
} // namespace

static int fail(const llvm::Twine &what) {
  llvm::errs() << "error: " << what << "\n";
  return 1;
}

int attn::explain(int argc, char **argv) {
  Options options;
  cl::ParseCommandLineOptions(argc, argv, "shows which tiles the kernel of a problem visits\n");
  if (llvm::Error error = options.inputs.check())
    return fail(llvm::toString(std::move(error)));
  for (const cl::opt<double> *rate : {&options.tflops, &options.gbps, &options.linkGbps, &options.messageUs})
    if (llvm::Error error = checkPositive(rate->ArgStr, *rate))
      return fail(llvm::toString(std::move(error)));
  if (options.target.empty())
    return fail("expected a target with --target, got none");
  rt::Result<Target> target = Target::parse(options.target);
  if (!target)
    return fail(target.error().str());
  ExplainRequest request;
  if (!options.tile.empty() && !(request.tile = ExplainRequest::Tile::parse(options.tile)))
    return fail("expected --tile=ROWSxKEYS, from 1 to 2^24 each, got: " + options.tile);
  request.sequence = options.sequence, request.head = options.head;
  request.tflops = options.tflops, request.gbps = options.gbps;
  request.svg = options.svg.getNumOccurrences();
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(options.file);
  if (!buffer)
    return fail("cannot read `" + options.file + "`: " + buffer.getError().message());
  if (request.svg) {
    llvm::SmallVector<llvm::StringRef> inputs = options.inputs.getFiles();
    inputs.push_back(options.file);
    if (llvm::Error error = checkResultPaths(inputs, {options.svg}))
      return fail(llvm::toString(std::move(error)));
  }
  Compilation compilation;
  auto module = compilation.parse((*buffer)->getBuffer(), options.file);
  if (!module)
    return fail(module.error().str());
  rt::Result<ProblemOp> problem = findExplained(**module, options.problem);
  if (!problem)
    return fail(problem.error().str());
  llvm::Expected<reference::InputRequest> inputs = options.inputs.requestFor(*problem);
  if (!inputs)
    return fail(llvm::toString(inputs.takeError()));
  bool comparesPlans = options.ranks.getNumOccurrences();
  const cl::Option *ofPlans[] = {&options.linkGbps, &options.messageUs},
                   *ofTiles[] = {&options.target, &options.tile,   &options.sequence, &options.head,
                                 &options.svg,    &options.tflops, &options.gbps};
  for (const cl::Option *option : comparesPlans ? llvm::ArrayRef(ofTiles) : llvm::ArrayRef(ofPlans))
    if (option->getNumOccurrences())
      return fail("expected " + llvm::Twine(comparesPlans ? "no " : "--ranks with ") + "--" + option->ArgStr +
                  (comparesPlans ? " with --ranks, which shows no tiles" : ""));
  if (comparesPlans) {
    PlansRequest request = {std::move(*inputs), options.ranks, {}};
    request.rates.linkGbps = options.linkGbps, request.rates.messageUs = options.messageUs;
    rt::Result<PlansExplanation> explained = explainPlans(*problem, std::move(request));
    if (!explained)
      return fail(explained.error().str());
    llvm::outs() << explained->text();
    return 0;
  }
  request.inputs = std::move(*inputs);
  rt::Result<Explanation> explained = explain(compilation, **module, *problem, *target, std::move(request));
  if (!explained)
    return fail(explained.error().str());
  llvm::outs() << explained->text();
  if (!options.svg.getNumOccurrences())
    return 0;
  std::error_code error;
  llvm::raw_fd_ostream svg(options.svg, error);
  if (error)
    return fail("cannot write `" + options.svg + "`: " + error.message());
  svg << explained->svg;
  return 0;
}
