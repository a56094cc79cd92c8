// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The verbs of a kernel that numbers trees.
#pragma once

#include "attn/number_tree.h"
