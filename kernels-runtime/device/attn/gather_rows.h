// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of kernels of `attn.gather_rows`.
#pragma once
#include "attn/epilogue/gather_rows.cuh"
