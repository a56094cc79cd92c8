// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Backward passes of short sequences on Hopper: `single_pass_backward` and `stationary_q_backward`.
//
#ifndef ATTN_LIB_SCHEDULES_SHORT_SHORTHOPPERBACKWARD_H
#define ATTN_LIB_SCHEDULES_SHORT_SHORTHOPPERBACKWARD_H

#include "attn/Schedules/Passes.h"

namespace attn {

/// Keys of the longest sequence that a CTA can have.
int64_t keysOfAll(tile::ScheduleInterface schedule);
/// Bytes of shared memory with stationary queries, without barriers. `outputs`: with a stage for O, from which delta is
/// computed.
int64_t bytesOfStationaryQ(ProblemOp problem, tile::StationaryQBackwardAttr schedule, bool outputs);
/// Is O loaded into shared memory, like dO, if there is room? Otherwise consumers read it from global memory.
bool loadsOutputs(ProblemOp problem, tile::ScheduleInterface schedule);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_SHORT_SHORTHOPPERBACKWARD_H
