// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_TEST_FUZZ_KERNELS_H
#define ATTN_TEST_FUZZ_KERNELS_H

#include <cstdint>
#include <string>

namespace attn::fuzz {

/// A problem's text, and the classes it stands for.
struct KernelCase {
  std::string text, mask, layout, heads, score;
};

/// A function of the seed alone. Any 198 seeds in a row hold every mask class
/// (the leaves with each kind of bound, and expressions) with every layout class
/// (but documents only with dense ones), and every mask and layout class with
/// MHA, GQA, MQA and both types; any 32 hold every head dim; three in eight modify
/// their scores. `hasFloat32`: every fourth has elements of f32 in place of its type.
KernelCase makeKernel(uint64_t seed, bool hasFloat32);

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_KERNELS_H
