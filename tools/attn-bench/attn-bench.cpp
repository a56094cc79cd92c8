// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times kernels and prints JSON lines: what machine and commit, then one line a
// case, with the keys of recorded runs of peers. On a GPU: medians of CUDA-event
// timings. TFLOP/s count visible pairs. With --tune: all schedules of one
// problem.
//
#include "../common/OptionChecks.h"
#include "Cases.h"
#include "NaiveLoop.h"
#include "SegmentsSuite.h"
#include "Timing.h"
#include "Tune.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include <nlohmann/json.hpp>
#include <set>

using namespace attn;
namespace cl = llvm::cl;
using Json = nlohmann::ordered_json;

static cl::list<std::string>
    suites("suite", cl::CommaSeparated,
           cl::desc("dense, masks, packed, short, cpu, segments; default: what suits the target"));
static cl::opt<std::string> filter("filter", cl::desc("only cases whose name contains this"));
static cl::opt<std::string> targetText("target",
                                       cl::desc("`cpu`, `sm_90a`, `sm_80` or `sm_80:<chip>`; default: the GPU if "
                                                "there is one, else cpu"));
static cl::opt<std::string>
    schedule("schedule", cl::desc("a schedule attribute in place of the one that is chosen, e.g. `#tile.tiled<...>`"));
static cl::opt<bool> backward("backward", cl::desc("time the problems' gradients, at 2.5 times the operations"));
static cl::opt<std::string> commit("commit", cl::desc("recorded in the first line"), cl::init("unknown"));
static cl::opt<double> budgetMs("budget-ms", cl::desc("time to spend on a case"), cl::init(150));

static cl::OptionCategory tuning("--tune: all schedules of one problem, the fastest first");
static cl::opt<bool> tune("tune", cl::cat(tuning),
                          cl::desc("compile and time the schedules of a problem; without its GPU only compile"));
static cl::opt<std::string> inputFile(cl::Positional, cl::cat(tuning), cl::desc("[problem.mlir]"));
static cl::opt<std::string> problemName("problem", cl::cat(tuning), cl::desc("which one, if the file has several"));
static cl::opt<std::string>
    caseName("case", cl::cat(tuning),
             cl::desc("a case of the suites in place of a file: its name, or what only it contains"));
static cl::opt<std::string>
    match("match", cl::cat(tuning),
          cl::desc("only schedules in whose text this regular expression is found, e.g. `warps = 12.*stages = 2`"));
static cl::opt<bool> json("json", cl::cat(tuning), cl::desc("JSON lines in place of a table"));
static cl::opt<int64_t> batch("batch", cl::cat(tuning),
                              cl::desc("of a file's dense problem (or rows of ids); default: for 16384 tokens"));
static cl::opt<int64_t> seqlen("seqlen", cl::cat(tuning),
                               cl::desc("of its sequences; default: its expected_seqlen, or 4096"));
static cl::list<int64_t>
    lengthsAsked("lengths", cl::CommaSeparated, cl::cat(tuning),
                 cl::desc("of a file's packed sequences; default: 16384 tokens in sequences of the expected length"));

static rt::Result<Json> runCase(const Case &c, const Target &target) {
  Compilation compilation;
  std::string text = c.problem(backward ? std::string() : schedule.getValue());
  if (backward)
    text +=
        "attn.backward @grads of(@bench)" + (schedule.empty() ? std::string() : " schedule(" + schedule + ")") + "\n";
  auto module = compilation.parse(text, "bench");
  if (!module)
    return module.error();
  auto computation = findComputation(**module, "");
  if (!computation)
    return computation.error();

  bench::Clock clock;
  auto kernel = Kernel::create(text, "", target);
  if (!kernel)
    return kernel.error();
  double createMs = clock.ms();
  rt::Result<bench::Timing> timing = bench::timeKernel(**kernel, *computation, c.sizes(), budgetMs);
  if (!timing)
    return timing.error();

  double flops = bench::flopsOf(computation->problem, c.sizes()).value_or(0) * (backward ? 2.5 : 1);
  const std::string pass = backward ? "bwd" : "fwd";
  const rt::CompiledKernel &compiled = (*kernel)->getCompiled();
  bool cold = compiled.origin == rt::CompiledKernel::Origin::Compiled;
  Json line = {{"peer", "attnc"},
               {"case", c.name},
               {"schedule", timing->schedule},
               {pass + "_ms", bench::rounded(timing->medianMs)},
               {pass + "_tf", bench::rounded(flops / timing->medianMs / 1e9, target.isHost() ? 1e4 : 10)},
               {"gb_s", bench::rounded(timing->bytes / timing->medianMs / 1e6, 10)},
               {cold ? "compile_cold_ms" : "compile_warm_ms", bench::rounded(createMs, 10)}};
  if (!target.isHost())
    line["launch_us"] = bench::rounded(timing->launchUs, 100);
  for (auto &[key, value] : compiled.artifact.notes)
    line[key] = value;
  return line;
}

static int fail(const rt::Error &error) {
  llvm::errs() << "error: " << error.str() << "\n";
  return 1;
}

/// The case of this name, or the only one that contains it.
static rt::Result<Case> findCase(llvm::StringRef name) {
  std::vector<Case> found;
  for (Case &c : allCases()) {
    if (c.name == name)
      return c;
    if (llvm::StringRef(c.name).contains(name))
      found.push_back(c);
  }
  if (found.size() == 1)
    return found.front();
  std::string names;
  for (const Case &c : found.empty() ? allCases() : found)
    names += "\n  " + c.name;
  return rt::Error{"expected --case to be (or to be contained in) the name of one case, got: " + name.str() +
                   (found.empty() ? "; there are:" : "; it is in:") + names};
}

static rt::Status statusOf(llvm::Error error) {
  return error ? rt::Status(rt::Error{llvm::toString(std::move(error))}) : rt::Status();
}

/// That sizes are sane, and those of something that the problem has.
static rt::Status checkSizesFor(ProblemOp problem) {
  for (const cl::opt<int64_t> *size : {&batch, &seqlen})
    if (size->getNumOccurrences())
      if (rt::Status sane = statusOf(checkSizes(size->ArgStr, size->getValue(), 1)); !sane)
        return sane;
  if (rt::Status sane = statusOf(checkSizes(lengthsAsked.ArgStr, *&lengthsAsked)); !sane)
    return sane;
  bool packed[] = {problem.getQLayout().isPacked(), problem.getKLayout().isPacked()};
  if (problem.getSegments())
    packed[0] = packed[1] = false; // ids are rows of tokens
  bool given[] = {batch.getNumOccurrences() > 0, seqlen.getNumOccurrences() > 0, !lengthsAsked.empty()};
  if (given[2] && !packed[0] && !packed[1])
    return rt::Error{"expected --batch and --seqlen for sequences that are not packed, got: --lengths"};
  if (given[0] && (packed[0] || packed[1]))
    return rt::Error{"expected --lengths for packed sequences, got: --batch"};
  if (given[1] && packed[0] && packed[1])
    return rt::Error{"expected --lengths for packed sequences, got: --seqlen"};
  return {};
}

static rt::Result<bench::TuneRequest> requestFromFile() {
  auto file = llvm::MemoryBuffer::getFileOrSTDIN(inputFile);
  if (!file)
    return rt::Error{"cannot read `" + inputFile + "`: " + file.getError().message()};
  bench::TuneRequest request{inputFile, (*file)->getBuffer().str(), problemName, {}, match, json};
  Compilation compilation;
  auto module = compilation.parse(request.text, inputFile);
  if (!module)
    return module.error();
  auto problem = findProblem(**module, problemName);
  if (!problem)
    return problem.error();
  if (rt::Status sane = checkSizesFor(*problem); !sane)
    return sane.error();
  int64_t queries = seqlen ? seqlen.getValue() : int64_t(problem->getExpectedSeqlenQ().value_or(4096));
  int64_t keys = seqlen ? seqlen.getValue() : int64_t(problem->getExpectedSeqlenKv().value_or(4096));
  reference::InputSizes &sizes = request.sizes;
  sizes.seqlenQ = queries, sizes.seqlenKv = keys;
  int64_t count = std::max<int64_t>(1, 16384 / keys);
  sizes.lengthsQ.assign(count, queries), sizes.lengthsKv.assign(count, keys);
  if (!lengthsAsked.empty())
    sizes.lengthsQ = sizes.lengthsKv = std::vector<int64_t>(lengthsAsked.begin(), lengthsAsked.end());
  sizes.batch = batch ? batch.getValue() : count;
  sizes.padding = 0;
  return request;
}

/// Options that nobody would look at.
static rt::Status checkApply(const std::vector<std::string> &wanted) {
  auto refuse = [](std::initializer_list<const cl::Option *> options, const std::string &expected) -> rt::Status {
    for (const cl::Option *option : options)
      if (option->getNumOccurrences())
        return rt::Error{"expected " + expected + ", got: --" + option->ArgStr.str()};
    return {};
  };
  rt::Status good;
  if (!tune) {
    good = refuse({&problemName, &caseName, &match, &json, &batch, &seqlen, std::addressof(lengthsAsked)},
                  "--tune beside what is about it");
    if (good && wanted == std::vector<std::string>{"segments"})
      good = refuse({&schedule, &backward, &budgetMs},
                    "a suite of attention, which has schedules and a budget, beside `segments`");
    return good;
  }
  good = refuse({std::addressof(suites), &filter, &schedule, &backward, &budgetMs}, "with --tune no option of suites");
  if (good && !json)
    good = refuse({&commit}, "--json beside --commit, which goes to its first line");
  if (good && !caseName.empty())
    good = refuse({&problemName, &batch, &seqlen, std::addressof(lengthsAsked)}, "with --case no option of files");
  return good;
}

static rt::Status checkSuites(const std::vector<std::string> &wanted) {
  std::set<std::string> known = {"segments"};
  for (const Case &c : allCases())
    known.insert(c.suite);
  for (const std::string &suite : wanted)
    if (!known.count(suite))
      return rt::Error{"expected --suite of " + llvm::join(known, ", ") + ", got: " + suite};
  return {};
}

static rt::Status runTune(const Target &target) {
  if (inputFile.empty() == caseName.empty())
    return rt::Error{"expected --tune with either a file or --case, got: " +
                     std::string(inputFile.empty() ? "neither" : "both")};
  bench::TuneRequest request;
  if (!inputFile.empty()) {
    auto fromFile = requestFromFile();
    if (!fromFile)
      return fromFile.error();
    request = std::move(*fromFile);
  } else {
    auto found = findCase(caseName);
    if (!found)
      return found.error();
    request = {found->name, found->problem(""), "", found->sizes(), match, json};
  }
  if (json) {
    Json machine = bench::describeMachine(target);
    machine["commit"] = commit.getValue();
    llvm::outs() << machine.dump() << "\n";
  }
  return bench::tune(request, target, llvm::outs());
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "times attention kernels\n");
  rt::Result<Target> parsed = Target::parse(targetText);
  if (!parsed)
    return fail(parsed.error());
  const Target &target = *parsed;
  std::vector<std::string> wanted(suites.begin(), suites.end());
  if (wanted.empty())
    wanted = target.isHost() ? std::vector<std::string>{"cpu"} : std::vector<std::string>{"dense", "masks", "packed"};
  if (rt::Status good = checkApply(wanted); !good)
    return fail(good.error());
  if (tune) {
    rt::Status status = runTune(target);
    return status ? 0 : fail(status.error());
  }
  if (!inputFile.empty())
    return fail({"expected --tune beside a file"});
  if (rt::Status good = checkSuites(wanted); !good)
    return fail(good.error());
  if (rt::Status sane = statusOf(checkPositive(budgetMs.ArgStr, budgetMs)); !sane)
    return fail(sane.error());

  Json machine = bench::describeMachine(target);
  machine["commit"] = commit.getValue();
  llvm::outs() << machine.dump() << "\n";
  int status = 0;
  bool any = false;
  auto report = [&](const Json &line) {
    any = true;
    status |= line.contains("error");
    llvm::outs() << line.dump() << "\n";
    llvm::outs().flush();
  };
  if (llvm::is_contained(wanted, "segments"))
    bench::runSegments(target, filter, report);
  for (const Case &c : allCases()) {
    if (!llvm::is_contained(wanted, c.suite) || c.name.find(filter) == std::string::npos)
      continue;
    rt::Result<Json> line = runCase(c, target);
    report(line ? *line : Json{{"peer", "attnc"}, {"case", c.name}, {"error", line.error().str()}});
    if (c.suite != "cpu" || backward || !target.isHost())
      continue;
    double ms = bench::timeNaiveLoop(c.batch * c.heads, c.seqlen, c.dim, c.mask == "#attn.causal");
    report({{"peer", "plain -O2 loop, all CPUs"}, {"case", c.name}, {"fwd_ms", bench::rounded(ms)}});
  }
  if (!any)
    return fail({"expected --filter to be in the name of a case of " + llvm::join(wanted, ", ") + ", got: " + filter});
  return status;
}
