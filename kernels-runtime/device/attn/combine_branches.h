// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of kernels of `attn.combine`, `attn.combine_backward` and `attn.add`.
#pragma once
#include "attn/sparse/combine_branches.cuh"
