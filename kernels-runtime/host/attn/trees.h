// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Host function of the kernel that numbers trees.
#pragma once

#include "attn/number_tree.h"
