// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tile scheduler: which work tile a CTA processes next.
#pragma once
#include "attn/ptx/prelude.cuh"
#include "attn/scheduler/queue.cuh"

namespace attn {

// Takes the next of `tickets` numbers; the last one resets the counter to 0, its value before and after a launch.
ATTN_INLINE int fetch_ticket(unsigned *counter, int tickets) {
  const int number = atomicAdd(counter, 1);
  if (number == tickets - 1)
    *counter = 0;
  return number;
}
// The dynamic tile scheduler: a CTA starts with the tile of its own index and then takes the next of `tiles` tiles that
// no CTA has taken. Each CTA requests tiles until none is left, which makes `tiles` requests in all. Without a counter
// the schedule is a static grid stride.
ATTN_INLINE int next_work_tile(unsigned *counter, int tile, int tiles) {
  if (lane_index() == 0)
    tile = (counter ? fetch_ticket(counter, tiles) : tile) + gridDim.x;
  return __shfl_sync(~0u, tile, 0);
}
// The same for kernels whose CTAs wait for earlier tiles: the first tile comes from the counter, too, so that all
// earlier tiles are taken by CTAs that are or were resident. (Otherwise other kernels could delay the start of some
// CTAs of the launch for long.) `otherwise`: the tile without a counter.
ATTN_INLINE int work_tile_in_order(unsigned *counter, int otherwise, int tiles) {
  if (lane_index() == 0 && counter)
    otherwise = fetch_ticket(counter, tiles + gridDim.x);
  return __shfl_sync(~0u, otherwise, 0);
}
ATTN_INLINE int first_work_tile_in_order(unsigned *counter, int tiles) {
  return work_tile_in_order(counter, blockIdx.x, tiles);
}
ATTN_INLINE int next_work_tile_in_order(unsigned *counter, int tile, int tiles) {
  return work_tile_in_order(counter, tile + gridDim.x, tiles);
}

} // namespace attn
