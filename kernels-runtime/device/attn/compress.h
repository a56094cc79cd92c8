// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of kernels of `attn.compress`.
#pragma once
#include "attn/sparse/compress.cuh"
