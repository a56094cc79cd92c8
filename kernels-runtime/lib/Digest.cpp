// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Digest.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/SHA256.h"

using namespace attn::rt;

std::string attn::rt::sha256(std::string_view bytes) {
  auto hash =
      llvm::SHA256::hash(llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(64);
  for (uint8_t byte : hash) {
    hex += digits[byte >> 4];
    hex += digits[byte & 15];
  }
  return hex;
}
