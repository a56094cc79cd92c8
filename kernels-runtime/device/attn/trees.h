// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of the kernel that numbers trees.
#pragma once
#include "attn/metadata/number_tree.cuh"
#include "attn/scheduler/queue.cuh"
