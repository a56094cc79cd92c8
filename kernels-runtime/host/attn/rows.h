// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The verbs of a kernel that has a row of tokens in each block, or a whole
// batch in one.
#pragma once

#include "attn/segments.h"
#include "attn/slots.h"
