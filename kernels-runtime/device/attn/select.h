// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of kernels of `attn.select`.
#pragma once
#include "attn/sparse/select.cuh"
