// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `by_residue`: tiles of every n-th row, for masks under which a row sees every n-th key
// (docs/Schedules/by_residue.md).
//
#include "Schedules/Choices.h"
#include "Schedules/Common/Registry.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;
using namespace attn::tile;

namespace {
/// While it lives, a problem has the mask that tiles of one residue have, and no max_seqlen, since no sequence has
/// tiles of its own; or, for choosing tiles, all lengths divided.
class RestOfMask {
public:
  RestOfMask(ProblemOp problem, const ResidueMask &mask, bool dividesLengths = false)
      : problem(problem), properties(problem.getProperties()) {
    problem.setMaskAttr(mask.rest);
    if (!dividesLengths) {
      problem.removeMaxSeqlenQAttr(), problem.removeMaxSeqlenKvAttr();
      return;
    }
    auto divided = [&](std::optional<uint64_t> length) {
      return length ? std::optional<uint64_t>(llvm::divideCeil(*length, uint64_t(mask.strided.getStride())))
                    : std::nullopt;
    };
    std::optional<uint64_t> queries = problem.getExpectedSeqlenQ();
    problem.setExpectedSeqlenQ(divided(queries)), problem.setExpectedSeqlenKv(divided(problem.getExpectedSeqlenKv()));
    problem.setMaxSeqlenQ(divided(problem.getMaxSeqlenQ())), problem.setMaxSeqlenKv(divided(problem.getMaxSeqlenKv()));
    if (hasFewQueries(problem)) // all residues together are not
      problem.setExpectedSeqlenQ(queries);
  }
  RestOfMask(const RestOfMask &) = delete;
  ~RestOfMask() { problem.getProperties() = properties; }

private:
  ProblemOp problem;
  ProblemOp::Properties properties;
};
} // namespace

std::optional<ResidueMask> attn::residuesOf(MaskInterface mask, ByResidueAttr schedule) {
  std::optional<ResidueMask> residues = findResidues(mask, schedule.getStride());
  return residues && residues->strided.getStride() == schedule.getStride() ? residues : std::nullopt;
}

/// `2nd`, `3rd`, `4th`.
static std::string ordinal(int64_t number) {
  return std::to_string(number) + (number == 2 ? "nd" : number == 3 ? "rd" : "th");
}

/// What excludes tiles of one residue; null if there is nothing of it.
static const char *whyNotByResidue(Computation of, const ResidueMask &mask) {
  ProblemOp problem = of.problem;
  if (!problem.getModifiers().empty())
    return "score modifiers";
  if (problem.dropoutInForce())
    return "dropout";
  if (problem.getSegments())
    return "segments";
  if (problem.getTiles())
    return "an order of tiles";
  if (hasPredicate(mask.rest))
    return "a predicate in the rest of the mask";
  if (llvm::any_of(distinctOperands(mask.rest),
                   [](const MaskOperand &array) { return array.lists || !array.madeOf.empty(); }))
    return "block maps or trees";
  return of.backward && of.backward.getRequiresGrad() ? "requires_grad" : nullptr;
}

namespace {
class ByResidueSchedule : public Schedule {
public:
  bool owns(mlir::Attribute schedule) const override {
    auto residues = llvm::dyn_cast<ByResidueAttr>(schedule);
    return residues && llvm::isa<BackwardKernelsAttr>(residues.getOf()) == ofBackward;
  }

  mlir::Attribute complete(Computation of, const TargetInfo &target, mlir::Attribute schedule) const override {
    auto residues = llvm::cast<ByResidueAttr>(schedule);
    std::optional<ResidueMask> mask = residuesOf(of.problem.getMask(), residues);
    if (!mask)
      return schedule; // refused
    RestOfMask rest(of.problem, *mask);
    return wrapped(residues.getStride(), inner(of, residues)->complete(of, target, residues.getOf()));
  }

  std::optional<std::string> refusal(Computation of, const TargetInfo &target,
                                     mlir::Attribute schedule) const override {
    auto residues = llvm::cast<ByResidueAttr>(schedule);
    std::optional<ResidueMask> mask = residuesOf(of.problem.getMask(), residues);
    if (!mask)
      return withSchedule(llvm::formatv("expected a mask with a conjunct #attn.strided of a stride that {0} divides, "
                                        "for tiles of every {1} row, got: ",
                                        residues.getStride(), ordinal(residues.getStride())),
                          of.problem.getMask());
    if (const char *why = whyNotByResidue(of, *mask))
      return withSchedule(llvm::formatv("expected no #tile.by_residue with {0}, got: ", why), schedule);
    if (auto tiles = llvm::dyn_cast<ScheduleInterface>(residues.getOf()); tiles && tiles.getPackHeads() != 1)
      return withSchedule("expected pack_heads = 1 in tiles by residue, got: ", schedule);
    RestOfMask rest(of.problem, *mask);
    return inner(of, residues)->refusal(of, target, residues.getOf());
  }

  mlir::Attribute fallback(Computation of, mlir::Attribute schedule) const override {
    auto residues = llvm::cast<ByResidueAttr>(schedule);
    mlir::Attribute less = inner(of, residues)->fallback(of, residues.getOf());
    return less ? wrapped(residues.getStride(), less) : mlir::Attribute();
  }

  std::string describe(Computation of, mlir::Attribute schedule) const override {
    auto residues = llvm::cast<ByResidueAttr>(schedule);
    std::optional<RestOfMask> rest;
    if (std::optional<ResidueMask> mask = residuesOf(of.problem.getMask(), residues)) // else it is refused
      rest.emplace(of.problem, *mask);
    return inner(of, residues)->describe(of, residues.getOf()) + ", of every " + ordinal(residues.getStride()) + " row";
  }

  void lower(Computation of, mlir::Attribute schedule, Lowering &lowering) const override {
    auto residues = llvm::cast<ByResidueAttr>(schedule);
    std::optional<ResidueMask> mask = residuesOf(of.problem.getMask(), residues);
    RestOfMask rest(of.problem, *mask);
    lowering.residues = mask->strided;
    inner(of, residues)->lower(of, residues.getOf(), lowering);
    lowering.residues = {};
  }

protected:
  explicit ByResidueSchedule(bool ofBackward) : ofBackward(ofBackward) {}

  static ByResidueAttr wrapped(int64_t stride, mlir::Attribute of) {
    return ByResidueAttr::get(of.getContext(), stride, of);
  }

  /// The residues of the problem's mask for the largest stride, if a pass has tiles of one residue.
  static std::optional<ResidueMask> residuesToChoose(Computation of) {
    std::optional<ResidueMask> mask = findResidues(of.problem.getMask());
    if (!mask || whyNotByResidue(of, *mask) || mayBeLonger(of.problem) || hasFewQueries(of.problem))
      return std::nullopt;
    // Shorter sequences have as few tiles of all rows.
    constexpr int64_t least = 256;
    if (expectedKeysOf(of.problem) <= least || int64_t(of.problem.getMaxSeqlenQ().value_or(least + 1)) <= least)
      return std::nullopt;
    return mask;
  }

  static std::string reason(const ResidueMask &mask) {
    return llvm::formatv("a row sees keys of one residue modulo {0} only", mask.strided.getStride());
  }

private:
  static const Schedule *inner(Computation of, ByResidueAttr residues) { return scheduleOf(of, residues.getOf()); }

  bool ofBackward;
};

class ByResidueForward : public ByResidueSchedule {
public:
  ByResidueForward() : ByResidueSchedule(/*ofBackward=*/false) {}

  mlir::Attribute choose(Computation of, const TargetInfo &target, std::string &why) const override {
    std::optional<ResidueMask> mask = residuesToChoose(of);
    if (!mask)
      return {};
    RestOfMask rest(of.problem, *mask, /*dividesLengths=*/true);
    std::string ignored;
    mlir::Attribute tiles = tilesOf(target).choose(of, target, ignored);
    if (!tiles)
      return {};
    why = reason(*mask);
    return wrapped(mask->strided.getStride(), tiles);
  }

  void addCandidates(Computation of, const TargetInfo &target, std::vector<mlir::Attribute> &all) const override {
    std::optional<ResidueMask> mask = findResidues(of.problem.getMask());
    if (!mask || whyNotByResidue(of, *mask))
      return;
    std::vector<mlir::Attribute> tiles;
    tilesOf(target).addCandidates(of, target, tiles);
    for (mlir::Attribute one : tiles)
      all.push_back(wrapped(mask->strided.getStride(), one));
  }

private:
  static const Schedule &tilesOf(const TargetInfo &target) {
    return target.specializesWarps ? warpSpecialized() : tiled();
  }
};

class ByResidueBackward : public ByResidueSchedule {
public:
  ByResidueBackward() : ByResidueSchedule(/*ofBackward=*/true) {}

  std::vector<ChosenSchedule> alternatives(Computation of, const TargetInfo &target, std::string &why) const override {
    std::optional<ResidueMask> mask = residuesToChoose(of);
    if (!mask)
      return {};
    RestOfMask rest(of.problem, *mask);
    why = reason(*mask);
    std::vector<ChosenSchedule> all = backwardKernels().alternatives(of, target, why);
    for (ChosenSchedule &chosen : all)
      chosen.schedule =
          wrapped(mask->strided.getStride(), llvm::cast<BackwardKernelsAttr>(chosen.schedule).withSplitQ(0));
    return all;
  }
};
} // namespace

const Schedule &attn::byResidueForward() {
  static const ByResidueForward schedule;
  return schedule;
}

const Schedule &attn::byResidueBackward() {
  static const ByResidueBackward schedule;
  return schedule;
}
