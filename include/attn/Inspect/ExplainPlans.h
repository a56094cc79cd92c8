// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which plan several ranks take for a problem: what the candidates send, what memory they need, how even their work is,
// and how long they take, computed from the tables that all ranks have (attn/Dialect/Plan/Analysis/Costs.h).
//
#ifndef ATTN_INSPECT_EXPLAINPLANS_H
#define ATTN_INSPECT_EXPLAINPLANS_H

#include "attn/API/Compile.h"
#include "attn/Dialect/Plan/Analysis/Costs.h"
#include "attn/Reference/InputRequest.h"

namespace attn {

struct PlansRequest {
  reference::InputRequest inputs; ///< lengths of sequences; a mask that reads arrays is taken to see all keys
  int64_t ranks = 2;
  plan::Rates rates;
};

struct PlansExplanation {
  struct Candidate {
    std::string sharding, steps; ///< as a `plan.def` and options of `plan-make-steps` say it; not of a given plan
    std::string given;           ///< the name of a plan of the module that has steps
    std::optional<plan::PlanCosts> costs[2]; ///< forward and backward; a given plan is of one pass

    double milliseconds() const { return costs[0]->milliseconds() + costs[1]->milliseconds(); }
    std::string name() const;
  };

  std::string problem, mask;
  std::string noKernels; ///< why there are none for parts of such sequences; empty if there are
  int64_t ranks = 0, sequences = 0, queries = 0, keys = 0, heads = 0, kvHeads = 0, dimQk = 0, dimV = 0;
  plan::Rates rates;
  plan::PlanCosts alone[2]; ///< one rank's passes, forward and backward
  /// Plans of the module that have steps for so many ranks, then plans by strategies, the fastest first, of both passes
  /// together. Shardings are those of plans without steps, too.
  std::vector<Candidate> candidates;
  std::vector<std::string> others;  ///< plans of the module for other ranks
  std::vector<std::string> refused; ///< those that are not for these sequences, and why

  /// All of it for a reader, as `attn-opt --explain --ranks=N` prints it.
  std::string text() const;
};

/// Errors: those of `reference::arraysOf`; a problem with segments; ranks or rates out of range.
rt::Result<PlansExplanation> explainPlans(ProblemOp problem, PlansRequest request);

} // namespace attn

#endif // ATTN_INSPECT_EXPLAINPLANS_H
