// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tile scheduler: which tile and head each CTA computes. Measurements are in docs/Schedules/trials/forward.md and
// docs/Schedules/trials/backward.md.
//
#include "SequenceBody.h"
#include <numeric>

using namespace attn;

bool SequenceBody::growsWithRows() {
  MaskScope none;
  return KeyWalk(problem.getMask(), none).growsWithRows();
}

int64_t SequenceBody::headsInLines(int64_t heads, LayoutAttr layout) {
  if (layout.getKind() == LayoutKind::bhsd)
    return 1;
  int64_t row = 2 * problem.getDimQk();
  return row % 256 == 0 ? 1 : std::gcd<int64_t>(heads, row % 128 == 0 ? 2 : 8);
}

SequenceBody::Deal SequenceBody::deal(Index block, Index tiles, int64_t heads, LayoutAttr layout, Order order) {
  Deal dealt;
  bool packed = layout.isPacked();
  if ((order == Order::InterleavedHeads || order == Order::InterleavedManyHeads) && !packed) {
    // Heads in a group: enough that the previous tile's addition is over when the next tile reaches the same dQ rows,
    // and few enough that concurrent tiles of a head share data in the L2 cache. More heads where waiting costs more
    // and heads are short; fewer for wide heads.
    Index together = 16;
    if (order == Order::InterleavedManyHeads)
      together = math.named(math.clamp(div(384, tiles), 32, 64), "heads_per_group");
    else if (problem.getDimQk() > 128)
      together = math.named(math.clamp(div(128, tiles), 8, 16), "heads_per_group");
    Index group = div(block, times(together, tiles)), first = math.named(times(group, together), "first_head");
    Index inGroup = math.sub(block, times(first, tiles));
    together = math.min(together, math.sub(math.mul(arg("batch"), heads), first));
    dealt.tile = math.named(div(inGroup, together), "tile");
    dealt.head = math.add(first, math.sub(inGroup, times(dealt.tile, together)));
  } else if (packed && order != Order::Alike) {
    dealt.head = rem(block, heads), dealt.tile = div(block, heads);
  } else {
    bool alike = order == Order::Alike || order == Order::LastFirst;
    int64_t together = alike ? headsInLines(heads, layout) : std::gcd<int64_t>(heads, 8);
    Index groupTile = together == 1 ? block : math.named(math.floorDiv(block, together), "group_tile");
    dealt.head = div(groupTile, tiles);
    if (together != 1)
      dealt.head = math.add(math.mul(dealt.head, together), rem(block, together));
    dealt.tile = rem(groupTile, tiles);
    if (order == Order::LastFirst)
      dealt.head = math.sub(math.mul(arg("batch"), heads), math.add(dealt.head, 1));
  }
  if (order == Order::LastIsLongest || order == Order::LastFirst)
    dealt.tile = math.sub(math.sub(tiles, 1), dealt.tile);
  return dealt;
}
