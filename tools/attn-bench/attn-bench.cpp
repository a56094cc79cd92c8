// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times kernels and prints JSON lines: what machine and commit, then one line a
// case, with the keys of recorded runs of peers. On a GPU: medians of CUDA-event
// timings. TFLOP/s count visible pairs.
//
#include "Cases.h"
#include "NaiveLoop.h"
#include "Timing.h"
#include "attn/API/Jit.h"
#include "attn/Reference/Inputs.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include <cmath>
#include <nlohmann/json.hpp>

using namespace attn;
namespace cl = llvm::cl;
using Json = nlohmann::ordered_json;

static cl::list<std::string> suites("suite", cl::CommaSeparated,
                                    cl::desc("dense, masks, packed, cpu; default: what suits the target"));
static cl::opt<std::string> filter("filter", cl::desc("only cases whose name contains this"));
static cl::opt<std::string> targetText("target", cl::desc("default: the GPU if there is one, else cpu"));
static cl::opt<std::string> config("config", cl::desc("a #tile.config in place of the heuristic's"));
static cl::opt<std::string> commit("commit", cl::desc("recorded in the first line"), cl::init("unknown"));
static cl::opt<double> budgetMs("budget-ms", cl::desc("time to spend on a case"), cl::init(150));

static double rounded(double x, double unit = 1e4) { return std::round(x * unit) / unit; }

/// Visible pairs of one head, summed over sequences: what each row alone sees.
static double visiblePairs(MaskInterface mask, const std::vector<int64_t> &lengths) {
  double pairs = 0;
  for (int64_t length : lengths) {
    MaskScope scope{Index::runtime(length), Index::runtime(length), 0, 0, {}};
    for (int64_t q = 0; q < length; ++q)
      pairs += countKeys(mask, scope, q);
  }
  return pairs;
}

static rt::Result<Json> runCase(const Case &c, const Target &target) {
  Compilation compilation;
  std::string text = c.problem(config);
  auto module = compilation.parse(text, "bench");
  if (!module)
    return module.error();
  auto problem = findProblem(**module, "");
  if (!problem)
    return problem.error();

  bench::Clock clock;
  auto kernel = Kernel::create(text, "", target);
  if (!kernel)
    return kernel.error();
  double createMs = clock.ms();
  reference::InputSizes sizes;
  sizes.batch = c.batch, sizes.seqlenQ = sizes.seqlenKv = c.seqlen;
  sizes.lengthsQ = sizes.lengthsKv = c.lengths;
  sizes.padding = 0;
  rt::Result<bench::Timing> timing = bench::timeKernel(**kernel, *problem, sizes, budgetMs);
  if (!timing)
    return timing.error();

  std::vector<int64_t> lengths = c.lengths.empty() ? std::vector<int64_t>(c.batch, c.seqlen) : c.lengths;
  double flops = 4.0 * visiblePairs(problem->getMask(), lengths) * c.heads * c.dim;
  const rt::CompiledKernel &compiled = (*kernel)->getCompiled();
  bool cold = compiled.origin == rt::CompiledKernel::Origin::Compiled;
  Json line = {{"peer", "attnc"},
               {"case", c.name},
               {"fwd_ms", rounded(timing->medianMs)},
               {"fwd_tf", rounded(flops / timing->medianMs / 1e9, target.isHost() ? 1e4 : 10)},
               {"gb_s", rounded(timing->bytes / timing->medianMs / 1e6, 10)},
               {cold ? "compile_cold_ms" : "compile_warm_ms", rounded(createMs, 10)}};
  if (!target.isHost())
    line["launch_us"] = rounded(timing->launchUs, 100);
  for (auto &[key, value] : compiled.artifact.notes)
    line[key] = value;
  return line;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "times attention kernels\n");
  rt::Result<Target> parsed = Target::parse(targetText);
  if (!parsed) {
    llvm::errs() << "error: " << parsed.error().str() << "\n";
    return 1;
  }
  const Target &target = *parsed;
  std::vector<std::string> wanted(suites.begin(), suites.end());
  if (wanted.empty())
    wanted = target.isHost() ? std::vector<std::string>{"cpu"} : std::vector<std::string>{"dense", "masks", "packed"};

  Json machine = bench::describeMachine(target);
  machine["commit"] = commit.getValue();
  llvm::outs() << machine.dump() << "\n";
  int status = 0;
  for (const Case &c : allCases()) {
    if (!llvm::is_contained(wanted, c.suite) || c.name.find(filter) == std::string::npos)
      continue;
    rt::Result<Json> line = runCase(c, target);
    if (!line) {
      line = Json{{"peer", "attnc"}, {"case", c.name}, {"error", line.error().str()}};
      status = 1;
    }
    llvm::outs() << line->dump() << "\n";
    llvm::outs().flush();
    if (c.suite != "cpu" || !target.isHost())
      continue;
    double ms = bench::timeNaiveLoop(c.batch * c.heads, c.seqlen, c.dim, c.mask == "#attn.causal");
    llvm::outs() << Json{{"peer", "plain -O2 loop, all CPUs"}, {"case", c.name}, {"fwd_ms", rounded(ms)}}.dump()
                 << "\n";
  }
  return status;
}
