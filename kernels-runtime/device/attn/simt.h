// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of SIMT kernels for short sequences.
#pragma once
#include "attn/simt/backward.cuh"
#include "attn/simt/store.cuh"
