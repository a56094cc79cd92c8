// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tile scheduler: which tile and head each CTA computes. Measurements are in docs/Schedules/trials/forward.md and
// docs/Schedules/trials/backward.md.
//
#include "AttentionBody.h"
#include <numeric>

using namespace attn;

bool AttentionBody::growsWithRows() {
  MaskScope none;
  return KeyWalk(problem.getMask(), none).growsWithRows();
}

int64_t AttentionBody::headsInLines(int64_t heads, LayoutAttr layout) {
  if (layout.getKind() == LayoutKind::bhsd)
    return 1;
  int64_t row = 2 * problem.getDimQk();
  return row % 256 == 0 ? 1 : std::gcd<int64_t>(heads, row % 128 == 0 ? 2 : 8);
}

AttentionBody::TileAndHead AttentionBody::assignTile(Index cta, Index tiles, int64_t heads, LayoutAttr layout,
                                                     Order order) {
  TileAndHead assigned;
  bool packed = layout.isPacked(), isGrouped = problem.getHeads() != problem.getKvHeads(),
       isWide = problem.getDimQk() > 128;
  bool ofManyHeads =
      order == Order::LptAscending && (isGrouped ? !isWide : findLoopSplits() != nullptr); // as long loops come first
  if ((order == Order::InterleavedHeads || order == Order::InterleavedManyHeads || ofManyHeads) && !packed) {
    // Heads in a group: enough that the previous tile's addition is over when the next tile reaches the same dQ rows,
    // and few enough that concurrent tiles of a head share data in the L2 cache. More heads where waiting costs more
    // and heads are short; fewer for wide heads.
    Index headsPerGroup = 16;
    if (order == Order::InterleavedManyHeads)
      headsPerGroup = math.named(math.clamp(div(384, tiles), 32, 64), "heads_per_group");
    else if (order == Order::LptAscending)
      // With grouped heads, KV tiles are few and have long loops. Within 1024 tiles or more the longest come first, so
      // that the last group ends with short ones (28 query heads on 7, 8192 tokens: 417 -> 574 TFLOP/s). Wide heads are
      // faster in the order of their rows in memory.
      headsPerGroup = math.named(math.add(div(1024, tiles), std::gcd<int64_t>(heads, 8)), "heads_per_group");
    else if (isWide)
      headsPerGroup = math.named(math.clamp(div(128, tiles), 8, 16), "heads_per_group");
    Index group = div(cta, mulRuntime(headsPerGroup, tiles)),
          first = math.named(mulRuntime(group, headsPerGroup), "first_head");
    Index inGroup = math.sub(cta, mulRuntime(first, tiles));
    headsPerGroup = math.min(headsPerGroup, math.sub(math.mul(arg("batch"), heads), first));
    assigned.tile = math.named(div(inGroup, headsPerGroup), "tile");
    assigned.head = math.add(first, math.sub(inGroup, mulRuntime(assigned.tile, headsPerGroup)));
  } else if (packed && order != Order::EqualCost && order != Order::HeadsFirst) {
    assigned.head = rem(cta, heads), assigned.tile = div(cta, heads);
  } else {
    bool isEqualCost = order == Order::EqualCost || order == Order::Reversed;
    int64_t headsPerGroup = isEqualCost ? headsInLines(heads, layout) : std::gcd<int64_t>(heads, 8);
    Index groupTile = headsPerGroup == 1 ? cta : math.named(math.floorDiv(cta, headsPerGroup), "group_tile");
    assigned.head = div(groupTile, tiles);
    if (headsPerGroup != 1)
      assigned.head = math.add(math.mul(assigned.head, headsPerGroup), rem(cta, headsPerGroup));
    assigned.tile = rem(groupTile, tiles);
    if (order == Order::Reversed)
      assigned.head = math.sub(math.mul(arg("batch"), heads), math.add(assigned.head, 1));
  }
  if (order == Order::LptDescending || order == Order::Reversed)
    assigned.tile = math.sub(math.sub(tiles, 1), assigned.tile);
  return assigned;
}
