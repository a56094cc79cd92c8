// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PerSequenceBackwardBody.h"
#include "PerSequenceKernels.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

PerSequenceBackwardBody::PerSequenceBackwardBody(ProblemOp problem, KernelOp kernel, std::optional<ShortLimit> limit)
    : AttentionBody(problem, kernel), limit(limit), schedule(kernel.getSchedule()), groups(kernel.getHeads()),
      kvHeads(kvHeadsOf(problem, schedule)), group(problem.getHeads() / problem.getKvHeads()),
      lanes(isa<SimtRowsAttr>(schedule) ? cast<SimtRowsAttr>(schedule).getLanes() : 32) {}

void PerSequenceBackwardBody::findUnit() {
  Index unit = isa<SimtRowsAttr>(schedule) ? Index(Value(IndexOp::create(b, loc, IndexKind::global_warp)))
                                           : Index(Value(IndexOp::block(b, loc)));
  Index head = groups == 1 ? Index(0) : math.rem(unit, groups);
  batch = math.named(math.floorDiv(unit, groups), "b");
  int64_t laneGroups = 32 / lanes, heads = problem.getKvHeads();
  if (laneGroups > 1) {
    head = math.add(math.mul(head, laneGroups), Value(IndexOp::laneGroup(b, loc, lanes)));
    if (heads % laneGroups) // lane groups without a head compute the last one's and store the same values
      head = math.min(head, heads - 1);
  }
  kvHead = math.named(math.mul(head, kvHeads), "kv_head");
  h = group == 1 ? kvHead : math.named(math.mul(kvHead, group), "h");
  bool packed = problem.getQLayout().isPacked() || problem.getKLayout().isPacked();
  sequences = packed ? math.named(math.max(arg("batch"), 1), "sequences") : arg("batch");
  if (!warpSpecializationOf(
          schedule)) { // with roles, the grid has no extra CTAs, and publishing must not be in a branch
    auto exists = scf::IfOp::create(b, loc, math.value(math.lt(batch, sequences)));
    b.setInsertionPoint(exists.thenBlock(), exists.thenBlock()->begin());
  }
  lenQ = args.contains("seqlen_q") ? arg("seqlen_q") : Index(0);
  findLengths();
  clearLengthsOfEmptyBatch();
  if (problem.getQLayout().isPacked())
    firstQuery = math.named(load(startsOf(/*keys=*/false), batch), "first");
  if (limit)
    isShort = limit->holds(math, lenQ, scope.lenK);
}

/// With a batch of 0, packed queries (or keys) may have padding to store, while dense keys (or queries) have a length
/// but no rows. Sets that length to 0.
void PerSequenceBackwardBody::clearLengthsOfEmptyBatch() {
  LayoutAttr q = problem.getQLayout(), kv = problem.getKLayout();
  auto orNone = [&](Index length) { return math.select(math.lt(0, arg("batch")), length, 0); };
  if (kv.isPacked() && !q.isPacked())
    scope.lenQ = lenQ = math.named(orNone(lenQ), "len_q");
  if (q.isPacked() && !kv.isPacked())
    scope.lenK = math.named(orNone(scope.lenK), "len_kv");
}

std::optional<PerSequenceBackwardBody::Ends> PerSequenceBackwardBody::findEnds(bool keys) {
  LayoutAttr layout = layoutOf(keys);
  if (!layout.isPacked())
    return std::nullopt;
  Value offsets = startsOf(keys);
  Ends ends;
  if (layout.getPadded()) {
    ends.behind = load(offsets, math.min(math.add(batch, 1), arg("batch")));
    ends.beginAll = math.named(load(offsets, 0), "begin_all");
  }
  ends.endAll = load(offsets, arg("batch"));
  return ends;
}

void PerSequenceBackwardBody::storePadding(bool keys, ArrayRef<std::pair<const char *, int64_t>> tensors) {
  LayoutAttr layout = layoutOf(keys);
  if (!layout.isPacked())
    return;
  Index firstHead = keys ? kvHead : h, head = firstHead;
  auto pad = [&](Index begin, Index end, Index step) {
    for (auto [tensor, dim] : tensors)
      StorePaddingOp::create(b, loc, rowPointer(tensor, 0, batch, head), stride(tensor), math.value(begin),
                             math.value(end), math.value(step), dim, lanes);
  };
  std::optional<Ends> known = keys ? endsKv : endsQ;
  auto all = [&] {
    Ends ends = known ? *known : *findEnds(keys);
    if (layout.getPadded()) {
      Index own = keys ? math.add(firstKey, scope.lenK) : math.add(firstQuery, lenQ);
      pad(own, isShort ? math.select(*isShort, ends.behind, own) : ends.behind, 1);
      pad(batch, ends.beginAll, sequences);
    }
    pad(math.add(ends.endAll, batch), arg(keys ? "total_kv" : "total_q"), sequences);
  };
  int64_t heads = keys ? kvHeads : group * kvHeads;
  if (heads == 1)
    return all();
  loop("head_in_group", 0, heads, 1, [&](Index member) {
    head = math.named(math.add(firstHead, member), "head");
    all();
  });
}
