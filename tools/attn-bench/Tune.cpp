// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tune.h"
#include "Configs.h"
#include "Timing.h"
#include "attn/Schedules/Schedule.h"
#include "llvm/Support/Regex.h"
#include <atomic>
#include <fmt/format.h>
#include <set>
#include <thread>

using namespace attn;
using namespace attn::bench;
using Json = nlohmann::ordered_json;

constexpr double sampleMs = 4, finalists = 1.05;
constexpr int rounds = 5, roundsOfFinalists = 10;

namespace {
/// A schedule, and what became of it.
struct Tried {
  mlir::Attribute schedule;
  std::string text; ///< of the problem with it
  Program program;
  std::string error; ///< why it was not lowered, compiled or timed
  std::shared_ptr<const rt::CompiledKernel> binary;
  double compileMs = 0;
  std::shared_ptr<const Kernel> kernel;
  double distance = 0; ///< from the heuristic's result
  int64_t launches = 1;
  std::vector<double> samples;
  bool isHeuristics = false;

  bool fits() const { return binary && binary->report.fits(); }
  double ms() const { return samples.empty() ? INFINITY : median(samples); }
};

class Tuner {
public:
  Tuner(const TuneRequest &request, const Target &target) : request(request), target(target) {}

  rt::Status run(llvm::raw_ostream &os);

private:
  rt::Status enumerate();
  void lower(Tried &tried);
  void compile(Tried &tried);
  void compileAll();
  void compileFallbacks();
  std::string whyNotTimed() const;
  rt::Status time();
  void printTable(llvm::raw_ostream &os) const;
  void printJson(llvm::raw_ostream &os) const;

  const TuneRequest &request;
  const Target &target;
  Compilation compilation;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ProblemOp problem;
  std::vector<Tried> list;
  size_t refused = 0, same = 0;
  std::string refusal; ///< one of them
  std::string notTimed;
};
} // namespace

static std::string firstLine(const rt::Error &error) {
  llvm::StringRef text = llvm::StringRef(error.message);
  // Diagnostics of a lowering: the first says more than the headline.
  llvm::StringRef said = llvm::StringRef(error.log).split('\n').first;
  return said.empty() ? text.split('\n').first.str() : said.split("error: ").second.str();
}

rt::Status Tuner::enumerate() {
  auto parsed = compilation.parse(request.text, request.name);
  if (!parsed)
    return parsed.error();
  module = std::move(*parsed);
  auto found = findProblem(*module, request.problem);
  if (!found)
    return found.error();
  problem = *found;
  problem.removeScheduleAttr();
  problem.setMaskAttr(canonicalMask(problem.getMask())); // as schedules expect it
  llvm::Regex match(request.match.empty() ? "^" : request.match);
  if (std::string why; !match.isValid(why))
    return rt::Error{fmt::format("expected --match to be a regular expression, got: {} ({})", request.match, why)};
  mlir::Attribute heuristics = chooseSchedule(problem, target.info()).schedule;
  std::vector<mlir::Attribute> all = candidatesOf(problem, target), wanted;
  llvm::copy_if(all, std::back_inserter(wanted),
                [&](mlir::Attribute schedule) { return match.match(textOf(schedule)); });
  if (wanted.empty())
    return rt::Error{fmt::format("expected --match to fit one of the {} schedules for {}, such as `{}`, got: {}",
                                 all.size(), target.str(), textOf(all.front()), request.match)};
  if (!llvm::is_contained(wanted, heuristics))
    wanted.insert(wanted.begin(), heuristics);
  std::set<std::string> sources;
  for (mlir::Attribute schedule : wanted) {
    Tried tried;
    tried.schedule = schedule;
    tried.isHeuristics = schedule == heuristics;
    lower(tried);
    bool isNew = tried.error.empty() && sources.insert(tried.program.artifact().source).second;
    refused += !tried.error.empty();
    same += tried.error.empty() && !isNew;
    if (!tried.error.empty() && refusal.empty())
      refusal = tried.error;
    if (isNew)
      list.push_back(std::move(tried));
    else if (tried.isHeuristics) // the other one's code is the heuristic's, then
      for (Tried &other : list)
        other.isHeuristics |= tried.error.empty() && other.program.artifact().source == tried.program.artifact().source;
  }
  if (list.empty())
    return rt::Error{
        fmt::format("none of the {} schedules is accepted for {}: {}", wanted.size(), target.str(), refusal)};
  return {};
}

void Tuner::lower(Tried &tried) {
  ProblemOp copy = problem.clone();
  copy.setScheduleAttr(tried.schedule);
  llvm::raw_string_ostream(tried.text) << copy << "\n";
  copy.erase();
  auto program = compilation.compile(tried.text, "", target);
  if (!program) {
    tried.error = firstLine(program.error());
    return;
  }
  tried.program = std::move(*program);
  // Of the shared memory of a multiprocessor each block takes 1 KiB more than it asks for.
  int64_t bytes = target.info().sharedMemory + 1024, blocks = mainKernelOf(tried.schedule).getCtasPerSm();
  if (blocks > 1 && blocks * (tried.program.artifact().smemBytes + 1024) > bytes)
    tried.error = fmt::format("expected shared memory for {} blocks, got: {} bytes for each with {}", blocks,
                              tried.program.artifact().smemBytes, textOf(tried.schedule));
}

void Tuner::compile(Tried &tried) {
  Clock clock;
  auto binary = processCache().get(*rt::createCompiler(tried.program.artifact().target), tried.program.artifact());
  tried.compileMs = clock.ms();
  if (binary)
    tried.binary = std::move(*binary);
  else
    tried.error = "not compiled: " + llvm::StringRef(binary.error().str()).split('\n').second.split('\n').first.str();
}

void Tuner::compileAll() {
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      for (size_t at; (at = next++) < list.size();)
        compile(list[at]);
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// Where the heuristic's choice spills, a kernel gets the first of its fallbacks that does not.
void Tuner::compileFallbacks() {
  auto chosen = llvm::find_if(list, [](const Tried &tried) { return tried.isHeuristics; });
  mlir::Attribute schedule = chosen == list.end() ? mlir::Attribute() : chosen->schedule;
  while (schedule && !target.isHost() && !chosen->fits()) {
    schedule = scheduleOf(problem, schedule)->fallback(problem, schedule);
    if (!schedule)
      return;
    chosen->isHeuristics = false;
    chosen = llvm::find_if(list, [&](const Tried &tried) { return tried.schedule == schedule; });
    if (chosen == list.end()) {
      Tried tried;
      tried.schedule = schedule;
      lower(tried);
      if (!tried.error.empty())
        return;
      compile(tried);
      list.push_back(std::move(tried));
      chosen = std::prev(list.end());
    }
    chosen->isHeuristics = true;
  }
}

/// Empty if this machine can run the target.
std::string Tuner::whyNotTimed() const {
  if (target.isHost())
    return "";
  auto driver = rt::Driver::get();
  if (!driver)
    return driver.error().message;
  rt::Result<int> arch = (*driver)->arch(0);
  if (!arch)
    return arch.error().message;
  return *arch == target.arch ? ""
                              : fmt::format("expected a GPU of compute capability {}, got: {}", target.arch, *arch);
}

rt::Status Tuner::time() {
  std::vector<Tried *> running;
  for (Tried &tried : list)
    if (tried.fits())
      running.push_back(&tried);
  // The heuristic's is the measure of results.
  llvm::stable_sort(running, [](Tried *a, Tried *b) { return a->isHeuristics > b->isHeuristics; });
  std::unique_ptr<Workload> work;
  std::optional<Turns> turns;
  std::optional<reference::Tensor> expected;
  auto start = [&](Tried &tried) -> rt::Status {
    auto kernel = Kernel::create(tried.text, "", target);
    if (!kernel)
      return kernel.status();
    tried.kernel = *kernel;
    if (!work) {
      auto made = Workload::create(**kernel, problem, request.sizes);
      if (!made)
        return made.status();
      work = std::move(*made);
      auto taking = Turns::create(*work);
      if (!taking)
        return taking.status();
      turns.emplace(*taking);
    }
    auto output = work->outputOf(**kernel);
    if (!output)
      return output.status();
    if (!expected)
      expected = std::move(*output);
    else
      tried.distance = distance(*output, *expected);
    rt::Result<double> ms = turns->msOf(**kernel, 1);
    if (!ms)
      return ms.status();
    tried.launches = std::clamp<int64_t>(std::llround(sampleMs / std::max(*ms, 1e-3)), 1, 1000);
    return {};
  };
  for (Tried *tried : running)
    if (rt::Status status = start(*tried); !status) {
      if (!turns) // no memory, or no context: nothing will run
        return status;
      tried->error = firstLine(status.error());
    }
  llvm::erase_if(running, [](Tried *tried) { return !tried->error.empty(); });
  auto round = [&](const std::vector<Tried *> &some) {
    for (Tried *tried : some)
      if (auto ms = turns->msOf(*tried->kernel, tried->launches))
        tried->samples.push_back(*ms);
      else
        tried->error = firstLine(ms.error());
  };
  for (int i = 0; i < rounds; ++i)
    round(running);
  double best = INFINITY;
  for (Tried *tried : running)
    best = std::min(best, tried->ms());
  llvm::erase_if(running, [&](Tried *tried) { return !(tried->ms() <= finalists * best); });
  for (int i = 0; i < roundsOfFinalists && running.size() > 1; ++i)
    round(running);
  return {};
}

static std::string spills(const Tried &tried) {
  const rt::ResourceReport &report = tried.binary->report;
  return tried.fits() ? "" : fmt::format("spills {} bytes, stack {}", report.spillStores, report.stack);
}

void Tuner::printTable(llvm::raw_ostream &os) const {
  std::optional<double> flops = flopsOf(problem, request.sizes);
  size_t spilling = llvm::count_if(list, [](const Tried &tried) { return tried.binary && !tried.fits(); });
  size_t timed = llvm::count_if(list, [](const Tried &tried) { return !tried.samples.empty(); });
  os << request.name
     << (problem->getParentOfType<mlir::ModuleOp>().getOps<BackwardOp>().empty() ? "" : ", its forward pass,")
     << " for " << target.str() << ": " << list.size() + refused + same << " schedules, " << refused << " refused, "
     << same << " with the code of another, " << spilling << " that spill, " << timed << " timed\n";
  if (refused)
    os << "refused, for one: " << refusal << "\n";
  if (!notTimed.empty())
    os << "not timed: " << notTimed << "\n";
  os << fmt::format("{:>8} {:>9} {:>6} {:>5} {:>9} {:>8}  {}\n", flops ? "TFLOP/s" : "", "ms", "/best", "regs",
                    "smem KiB", "build ms", "schedule");
  double best = list.front().ms();
  for (const Tried &tried : list) {
    double ms = tried.ms();
    std::string note = tried.isHeuristics ? "  <- the heuristic's" : "";
    for (const std::string &text : {tried.binary ? spills(tried) : "", tried.error})
      note += text.empty() ? "" : "  (" + text + ")";
    if (!(tried.distance < 0.01))
      note += fmt::format("  (its result differs by {:.2g})", tried.distance);
    bool known = tried.binary && tried.binary->report.known();
    os << fmt::format(
        "{:>8} {:>9} {:>6} {:>5} {:>9.1f} {:>8.0f}  {}{}\n",
        flops && std::isfinite(ms) ? fmt::format("{:.{}f}", *flops / ms / 1e9, target.isHost() ? 4 : 1) : "",
        std::isfinite(ms) ? fmt::format("{:.4f}", ms) : "-", std::isfinite(ms) ? fmt::format("{:.3f}", ms / best) : "",
        known ? std::to_string(tried.binary->report.registers) : "-", tried.program.artifact().smemBytes / 1024.,
        tried.compileMs, textOf(tried.schedule), note);
  }
}

void Tuner::printJson(llvm::raw_ostream &os) const {
  std::optional<double> flops = flopsOf(problem, request.sizes);
  for (const Tried &tried : list) {
    Json line = {{"peer", "attnc"}, {"case", request.name}, {"schedule", textOf(tried.schedule)}};
    if (!tried.samples.empty()) {
      line["fwd_ms"] = rounded(tried.ms(), 1e4);
      if (flops)
        line["fwd_tf"] = rounded(*flops / tried.ms() / 1e9, target.isHost() ? 1e4 : 10);
    }
    if (tried.binary && tried.binary->report.known()) {
      const rt::ResourceReport &report = tried.binary->report;
      line.update({{"registers", report.registers}, {"spill_stores", report.spillStores}, {"stack", report.stack}});
    }
    line.update({{"smem", tried.program.artifact().smemBytes}, {"build_ms", rounded(tried.compileMs, 10)}});
    if (tried.isHeuristics)
      line["heuristic"] = true;
    if (!(tried.distance < 0.01))
      line["differs"] = fmt::format("{:.2g}", tried.distance);
    if (!tried.error.empty())
      line["error"] = tried.error;
    os << line.dump() << "\n";
  }
}

rt::Status Tuner::run(llvm::raw_ostream &os) {
  if (rt::Status status = enumerate(); !status)
    return status;
  compileAll();
  compileFallbacks();
  if (llvm::none_of(list, [](const Tried &tried) { return tried.binary; }))
    return rt::Error{list.front().error};
  notTimed = whyNotTimed();
  if (notTimed.empty())
    if (rt::Status status = time(); !status)
      return status;
  llvm::stable_sort(list, [](const Tried &a, const Tried &b) {
    return std::tuple(a.ms(), !a.fits()) < std::tuple(b.ms(), !b.fits());
  });
  request.json ? printJson(os) : printTable(os);
  return {};
}

rt::Status bench::tune(const TuneRequest &request, const Target &target, llvm::raw_ostream &os) {
  return Tuner(request, target).run(os);
}
