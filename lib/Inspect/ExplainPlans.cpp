// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Inspect/ExplainPlans.h"
#include "attn/Dialect/Plan/Transforms/Passes.h"
#include "attn/Reference/Sequences.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <fmt/format.h>

using namespace attn;

static constexpr int64_t mostRanks = 1024;

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

/// Costs of a plan, or why it is not for these sequences.
static rt::Result<plan::PlanCosts> costsOf(ProblemOp problem, int64_t ranks, llvm::StringRef sharding,
                                           llvm::StringRef steps, bool backward, const plan::CallSequences &sequences,
                                           const plan::Rates &rates, bool isChecked) {
  auto module = planOf(problem, ranks, sharding, steps, backward);
  if (!module)
    return module.error();
  plan::DefOp plan = *(*module)->getOps<plan::DefOp>().begin();
  ProblemOp of = *(*module)->getOps<ProblemOp>().begin();
  plan::Tables tables;
  if (std::optional<std::string> wrong = tables.compute(plan, of, sequences, isChecked))
    return rt::Error{*wrong};
  return plan::costsOf(plan, of, tables, sequences, rates);
}

rt::Result<PlansExplanation> attn::explainPlans(ProblemOp problem, PlansRequest request) {
  if (request.ranks < 2 || request.ranks > mostRanks)
    return rt::Error{fmt::format("expected from 2 to {} ranks, got: {}", mostRanks, request.ranks)};
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
  result.problem = problem.getSymName().str();
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
  for (const std::string &sharding : shardings)
    for (const std::string &steps : plan::stepsFor(request.ranks, result.heads)) {
      auto forward = costsOf(problem, request.ranks, sharding, steps, false, sequences, request.rates, true);
      auto backward = costsOf(problem, request.ranks, sharding, steps, true, sequences, request.rates, true);
      if (!forward || !backward) {
        result.refused.push_back(
            fmt::format("{}, {}: {}", sharding, steps, (forward ? backward : forward).error().message));
        continue;
      }
      result.candidates.push_back({sharding, steps, std::move(*forward), std::move(*backward)});
    }
  llvm::stable_sort(result.candidates,
                    [](const auto &a, const auto &b) { return a.milliseconds() < b.milliseconds(); });
  if (!result.candidates.empty()) { // the one that is named as the fastest
    const PlansExplanation::Candidate &best = result.candidates.front();
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
  constexpr int64_t columns = 80;
  double all = costs.milliseconds();
  for (int64_t rank = 0; rank < std::min<int64_t>(ranks, 8); ++rank) {
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
}

std::string PlansExplanation::text() const {
  std::string text = fmt::format(
      "mask      {}\nsizes     {} sequences of {} queries and {} keys; {} query heads, {} kv heads; head dims {} and "
      "{}\n"
      "ranks     {}; {:g} and {:g} TFLOP/s forward and backward, links of {:g} GB/s each way, {:g} us a message\n"
      "alone     {:.3g} ms forward and {:.3g} ms backward on one rank\n\n",
      mask, sequences, queries, keys, heads, kvHeads, dimQk, dimV, ranks, rates.forwardTflops, rates.backwardTflops,
      rates.linkGbps, rates.messageUs, alone[0].milliseconds(), alone[1].milliseconds());
  text += "Computed, not measured; of the rank that has or takes most. Efficiency: time alone / (ranks * time).\n\n";
  text += fmt::format("{:46} {:>6} {:>17} {:>17} {:>19} {:>17} {:>13}\n", "", "work /", "received, MB", "memory, MB",
                      "time, ms", "exposed, ms", "efficiency");
  text += fmt::format("{:46} {:>6} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>8} {:>8} {:>6} {:>6}\n", "plan", "mean",
                      "fwd", "bwd", "fwd", "bwd", "fwd", "bwd", "fwd", "bwd", "fwd", "bwd");
  auto most = [](const plan::PlanCosts &costs, double plan::RankCosts::*number) {
    double found = 0;
    for (const plan::RankCosts &rank : costs.ranks)
      found = std::max(found, rank.*number);
    return found / 1e6;
  };
  for (const Candidate &each : candidates) {
    const plan::PlanCosts *passes[] = {&each.forward, &each.backward};
    text += fmt::format("{:46} {:6.2f}", llvm::StringRef(each.sharding).drop_front(6).str() + ", " + each.steps,
                        each.forward.balance());
    for (double plan::RankCosts::*number : {&plan::RankCosts::receivedBytes, &plan::RankCosts::peakBytes})
      for (const plan::PlanCosts *pass : passes)
        text += fmt::format(" {:8.1f}", most(*pass, number));
    for (const plan::PlanCosts *pass : passes)
      text += fmt::format(" {:9.3f}", pass->milliseconds());
    for (const plan::PlanCosts *pass : passes)
      text += fmt::format(" {:8.3f}", pass->exposedMs());
    for (bool backward : {false, true})
      text += fmt::format(" {:6.3f}",
                          passes[backward]->milliseconds() > 0
                              ? alone[backward].milliseconds() / passes[backward]->milliseconds() / double(ranks)
                              : 1);
    text += "\n";
  }
  for (const std::string &each : refused)
    text += "refused   " + each + "\n";
  if (candidates.empty())
    return text;
  const Candidate &best = candidates.front();
  for (bool backward : {false, true}) {
    const plan::PlanCosts &costs = backward ? best.backward : best.forward;
    text += fmt::format("\n{} of the first, {:.3g} ms: kernels (|###), and what arrives (<--)\n",
                        backward ? "backward" : "forward", costs.milliseconds());
    if (costs.milliseconds() > 0)
      printTimeline(text, costs, ranks);
  }
  text +=
      fmt::format("\nwritten by\n  attn-opt FILE --pass-pipeline='builtin.module(plan.def(plan-make-steps{{{}}}))'\n"
                  "from\n  plan.def @plan of(@{}) ranks({}) sharding({}) {{}}\n",
                  best.steps, problem, ranks, best.sharding);
  return text;
}
