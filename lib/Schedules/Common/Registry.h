// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All schedules. A new one adds a line here and one in ChooseSchedule.cpp.
//
#ifndef ATTN_LIB_SCHEDULES_COMMON_REGISTRY_H
#define ATTN_LIB_SCHEDULES_COMMON_REGISTRY_H

#include "attn/Schedules/Schedule.h"

namespace attn {

const Schedule &byLengthForward();
const Schedule &simtRowsForward();
const Schedule &ctaPerSequenceForward();
const Schedule &byResidueForward();
const Schedule &splitKv();
const Schedule &singlePass();
const Schedule &warpSpecialized();
const Schedule &tiled();

const Schedule &byLengthBackward();
const Schedule &simtRowsBackward();
const Schedule &ctaPerSequenceBackward();
const Schedule &shortBackwardOnHopper();
const Schedule &byResidueBackward();
const Schedule &backwardKernels();

/// The forward schedules on tiles of a grid, in the order of their rules.
llvm::ArrayRef<const Schedule *> tileSchedules();

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_COMMON_REGISTRY_H
