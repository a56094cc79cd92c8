// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Inspect/ExplainPlans.h"
#include "attn/Dialect/Plan/Transforms/Passes.h"
#include "attn/Reference/Sequences.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <fmt/format.h>

using namespace attn;

/// A plan of the problem, in a module of its own.
static rt::Result<mlir::OwningOpRef<mlir::ModuleOp>> planOf(ProblemOp problem, int64_t ranks, llvm::StringRef sharding,
                                                            llvm::StringRef steps, bool backward) {
  mlir::MLIRContext *context = problem.getContext();
  std::string text = fmt::format("plan.def @plan of(@{}) ranks({}) sharding({}) {} {{}}", problem.getSymName().str(),
                                 ranks, sharding.str(), backward ? "backward" : "");
  mlir::OwningOpRef<mlir::ModuleOp> module(mlir::ModuleOp::create(mlir::UnknownLoc::get(context)));
  module->push_back(problem->clone());
  mlir::Block parsed;
  if (failed(mlir::parseSourceString(text, &parsed, mlir::ParserConfig(context, /*verifyAfterParse=*/false))))
    return rt::Error{"cannot parse `" + text + "`"};
  parsed.front().moveBefore(module->getBody(), module->getBody()->end());
  for (plan::DefOp plan : module->getOps<plan::DefOp>())
    if (failed(plan::makeSteps(plan, steps)))
      return rt::Error{fmt::format("no steps by `{}`", steps.str())};
  return module;
}

namespace {
/// What plans of one sharding have in common.
struct Alike {
  std::optional<plan::Tables> tables; ///< of the first of them
  std::shared_ptr<plan::VisitedTiles> tiles;
};
} // namespace

/// Costs of a plan, or why it is not for these sequences.
static rt::Result<plan::PlanCosts> costsOf(ProblemOp problem, int64_t ranks, llvm::StringRef sharding,
                                           llvm::StringRef steps, bool backward, const plan::CallSequences &sequences,
                                           const plan::Rates &rates, bool isChecked, Alike *alike = nullptr) {
  auto module = planOf(problem, ranks, sharding, steps, backward);
  if (!module)
    return module.error();
  plan::DefOp plan = *(*module)->getOps<plan::DefOp>().begin();
  ProblemOp of = *(*module)->getOps<ProblemOp>().begin();
  plan::Tables tables;
  const plan::Tables *known = alike && alike->tables ? &*alike->tables : nullptr;
  if (std::optional<std::string> wrong = tables.compute(plan, of, sequences, isChecked, known))
    return rt::Error{*wrong};
  plan::PlanCosts costs = plan::costsOf(plan, of, tables, sequences, rates, alike ? alike->tiles : nullptr);
  if (alike && !known)
    alike->tables = std::move(tables);
  return costs;
}

std::string PlansExplanation::Candidate::name() const {
  return given.empty() ? llvm::StringRef(sharding).drop_front(6).str() + ", " + steps : "@" + given;
}

/// Plans of the problem's module.
static void addGiven(ProblemOp problem, const PlansRequest &request, const plan::CallSequences &sequences,
                     std::vector<std::string> &shardings, PlansExplanation &result) {
  auto textOf = [](mlir::Attribute attribute) {
    std::string text;
    llvm::raw_string_ostream(text) << attribute;
    return text;
  };
  for (plan::DefOp plan : problem->getParentOfType<mlir::ModuleOp>().getOps<plan::DefOp>()) {
    if (plan.getOf() != problem.getSymName())
      continue;
    const std::string name = plan.getSymName().str();
    if (int64_t(plan.getRanks()) != request.ranks) {
      result.others.push_back(fmt::format("@{}, for {} ranks", name, int64_t(plan.getRanks())));
      continue;
    }
    if (plan.getBody().front().empty()) {
      std::string sharding = textOf(plan.shardingOf(/*keys=*/false));
      if (plan.getKvSharding())
        sharding += ", " + textOf(plan.shardingOf(/*keys=*/true));
      if (!llvm::is_contained(shardings, sharding))
        shardings.push_back(sharding);
      continue;
    }
    plan::Tables tables;
    if (std::optional<std::string> wrong = tables.compute(plan, problem, sequences)) {
      result.refused.push_back("@" + name + ": " + *wrong);
      continue;
    }
    PlansExplanation::Candidate made = {"", "", name, {}};
    made.costs[plan.getBackward()] = plan::costsOf(plan, problem, tables, sequences, request.rates);
    result.candidates.push_back(std::move(made));
  }
}

rt::Result<PlansExplanation> attn::explainPlans(ProblemOp problem, PlansRequest request) {
  if (request.ranks < 2 || request.ranks > plan::mostRanks)
    return rt::Error{fmt::format("expected from 2 to {} ranks, got: {}", plan::mostRanks, request.ranks)};
  for (auto [name, rate] : {std::pair("forward-tflops", request.rates.forwardTflops),
                            {"backward-tflops", request.rates.backwardTflops},
                            {"copy-gbps", request.rates.copyGbps},
                            {"link-gbps", request.rates.linkGbps},
                            {"message-us", request.rates.messageUs},
                            {"launch-us", request.rates.launchUs}})
    if (!(rate >= 1e-3 && rate <= 1e9))
      return rt::Error{fmt::format("expected {} from 0.001 to 10^9, got: {:g}", name, rate)};
  if (problem.getSegments())
    return rt::Error{"expected a problem whose sequences are given, got: one with segments"};
  auto arrays = reference::arraysOf(problem, std::move(request.inputs));
  if (!arrays)
    return rt::Error{llvm::toString(arrays.takeError())};
  problem.getContext()->loadDialect<plan::PlanDialect>();
  reference::Sequences of(problem, arrays->first, arrays->second);
  PlansExplanation result;
  plan::CallSequences sequences;
  for (int64_t i = 0; i < of.size(); ++i) {
    sequences.lengths[0].push_back(of.queriesOf(i).length), sequences.lengths[1].push_back(of.keysOf(i).length);
    result.queries += of.queriesOf(i).length, result.keys += of.keysOf(i).length;
  }
  llvm::raw_string_ostream(result.mask) << problem.getMask();
  result.problem = problem.getSymName().str(), result.noKernels = plan::whyNoPieces(problem);
  result.ranks = request.ranks, result.sequences = of.size(), result.rates = request.rates;
  result.heads = problem.getHeads(), result.kvHeads = problem.getKvHeads();
  result.dimQk = problem.getDimQk(), result.dimV = problem.getDimV();
  for (bool backward : {false, true}) {
    auto alone = costsOf(problem, 1, "#plan.contiguous", "strategy=cast", backward, sequences, request.rates, false);
    if (!alone)
      return alone.error();
    result.alone[backward] = std::move(*alone);
  }
  std::vector<std::string> shardings = {"#plan.contiguous", "#plan.dual_chunk"};
  if (of.size() > 1)
    shardings.push_back("#plan.documents");
  addGiven(problem, request, sequences, shardings, result);
  const size_t given = result.candidates.size();
  for (const std::string &sharding : shardings) {
    Alike alike = {std::nullopt, plan::visitedTiles(problem.getMask(), sequences)};
    for (const std::string &steps : plan::stepsFor(request.ranks, result.heads)) {
      PlansExplanation::Candidate made = {sharding, steps, "", {}};
      for (bool backward : {false, true}) {
        auto costs = costsOf(problem, request.ranks, sharding, steps, backward, sequences, request.rates,
                             /*isChecked=*/true, &alike);
        if (costs)
          made.costs[backward] = std::move(*costs);
        else if (made.costs[0] || !backward)
          result.refused.push_back(made.name() + ": " + costs.error().message);
      }
      if (made.costs[0] && made.costs[1])
        result.candidates.push_back(std::move(made));
    }
  }
  std::stable_sort(result.candidates.begin() + given, result.candidates.end(),
                   [](const auto &a, const auto &b) { return a.milliseconds() < b.milliseconds(); });
  if (result.candidates.size() > given) { // the one that is named as the fastest
    const PlansExplanation::Candidate &best = result.candidates[given];
    for (bool backward : {false, true})
      if (auto costs = costsOf(problem, request.ranks, best.sharding, best.steps, backward, sequences, request.rates,
                               /*isChecked=*/false);
          !costs)
        return costs.error();
  }
  return result;
}

/// A line of what each of the first ranks does: kernels, and below them what arrives.
static void printTimeline(std::string &text, const plan::PlanCosts &costs, int64_t ranks) {
  constexpr int64_t columns = 80, mostLines = 8;
  double all = costs.milliseconds();
  for (int64_t rank = 0; rank < std::min(ranks, mostLines); ++rank) {
    std::string kernels(columns, '.'), arrivals(columns, ' ');
    bool receives = false;
    auto draw = [&](std::string &line, const plan::TimelineEntry &entry, char first, char rest) {
      int64_t begin = std::min(columns - 1, int64_t(entry.beginMs / all * columns)),
              end = std::clamp(int64_t(entry.endMs / all * columns + 0.5), begin + 1, columns);
      for (int64_t at = begin; at < end; ++at)
        line[at] = at == begin ? first : rest;
    };
    for (const plan::TimelineEntry &entry : costs.timeline) {
      if (entry.rank != rank)
        continue;
      if (entry.isMessage)
        receives = true;
      entry.isMessage ? draw(arrivals, entry, '<', '-') : draw(kernels, entry, '|', '#');
    }
    text += fmt::format("  rank {:<3} {}\n", rank, kernels);
    if (receives)
      text += fmt::format("           {}\n", arrivals);
  }
  if (ranks > mostLines)
    text += fmt::format("  and {} other ranks\n", ranks - mostLines);
}

std::string PlansExplanation::text() const {
  std::string text = fmt::format(
      "mask      {}\nsizes     {} sequences, in all {} queries and {} keys; {} query heads, {} kv heads; head dims {} "
      "and {}\n"
      "ranks     {}; {:g} and {:g} TFLOP/s forward and backward, links of {:g} GB/s each way, {:g} us a message, {:g} "
      "us "
      "a kernel\n"
      "alone     {:.3g} ms forward and {:.3g} ms backward on one rank\n\n",
      mask, sequences, queries, keys, heads, kvHeads, dimQk, dimV, ranks, rates.forwardTflops, rates.backwardTflops,
      rates.linkGbps, rates.messageUs, rates.launchUs, alone[0].milliseconds(), alone[1].milliseconds());
  text += "Computed, not measured; of the rank that has or takes most. Efficiency: time alone / (ranks * time).\n\n";
  text += fmt::format("{:40}{:>5}{:>16}{:>16}{:>16}{:>14}{:>12}\n", "", "work/", "received, MB", "memory, MB",
                      "time, ms", "exposed, ms", "efficiency");
  text += fmt::format("{:40}{:>5}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>7}{:>7}{:>6}{:>6}\n", "plan", "mean", "fwd", "bwd",
                      "fwd", "bwd", "fwd", "bwd", "fwd", "bwd", "fwd", "bwd");
  auto most = [](const plan::PlanCosts &costs, double plan::RankCosts::*number) {
    double found = 0;
    for (const plan::RankCosts &rank : costs.ranks)
      found = std::max(found, rank.*number);
    return found / 1e6;
  };
  for (const Candidate &each : candidates) {
    auto column = [&](bool backward, const char *format, auto number) {
      const std::optional<plan::PlanCosts> &costs = each.costs[backward];
      std::string written = fmt::format(fmt::runtime(format), costs ? double(number(*costs)) : 0.0);
      text += " " + (costs ? written : fmt::format("{:>{}}", "-", written.size()));
    };
    text += fmt::format("{:40} {:4.2f}", each.name(), (each.costs[0] ? each.costs[0] : each.costs[1])->balance());
    for (double plan::RankCosts::*number : {&plan::RankCosts::receivedBytes, &plan::RankCosts::peakBytes})
      for (bool backward : {false, true})
        column(backward, "{:7.1f}", [&](const plan::PlanCosts &costs) { return most(costs, number); });
    for (bool backward : {false, true})
      column(backward, "{:7.3f}", [](const plan::PlanCosts &costs) { return costs.milliseconds(); });
    for (bool backward : {false, true})
      column(backward, "{:6.3f}", [](const plan::PlanCosts &costs) { return costs.exposedMs(); });
    for (bool backward : {false, true})
      column(backward, "{:5.3f}", [&](const plan::PlanCosts &costs) {
        double time = costs.milliseconds();
        return time > 0 ? alone[backward].milliseconds() / time / double(ranks) : 1;
      });
    text += "\n";
  }
  if (!noKernels.empty())
    text += "no kernel " + noKernels + "\n";
  for (const std::string &each : others)
    text += "not shown " + each + "\n";
  for (const std::string &each : refused)
    text += "refused   " + each + "\n";
  auto draw = [&](const Candidate &one, llvm::StringRef name) {
    for (bool backward : {false, true})
      if (const std::optional<plan::PlanCosts> &costs = one.costs[backward]) {
        text += fmt::format("\n{} of {}, {:.3g} ms: kernels (|### each), and what arrives (<--)\n",
                            backward ? "backward" : "forward", name.str(), costs->milliseconds());
        if (costs->milliseconds() > 0)
          printTimeline(text, *costs, ranks);
      }
  };
  for (const Candidate &each : candidates)
    if (!each.given.empty())
      draw(each, each.name());
  auto first = llvm::find_if(candidates, [](const Candidate &each) { return each.given.empty(); });
  if (first == candidates.end())
    return text;
  const Candidate &best = *first;
  if (first == candidates.begin())
    draw(best, "the first");
  text +=
      fmt::format("\nwritten by\n  attn-opt FILE --pass-pipeline='builtin.module(plan.def(plan-make-steps{{{}}}))'\n"
                  "from\n  plan.def @plan of(@{}) ranks({}) sharding({}) {{}}\n",
                  best.steps, problem, ranks, best.sharding);
  return text;
}
