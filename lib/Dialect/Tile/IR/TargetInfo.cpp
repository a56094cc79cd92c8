// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/IR/TargetInfo.h"
#include "llvm/ADT/STLExtras.h"

using namespace attn;

llvm::ArrayRef<int64_t> TargetInfo::chipsOf(llvm::StringRef name) {
  static constexpr int64_t ampere[] = {80, 86, 87, 89, 90, 100, 120}, hopper[] = {90}, host[] = {0};
  if (name == "sm_80")
    return ampere;
  return name == "sm_90a" ? llvm::ArrayRef(hopper) : name == "cpu" ? llvm::ArrayRef(host) : llvm::ArrayRef<int64_t>();
}

std::string TargetInfo::textOfChips(llvm::StringRef name) {
  llvm::ArrayRef<int64_t> chips = chipsOf(name);
  std::string text;
  for (int64_t chip : chips)
    text += (text.empty() ? "" : chip == chips.back() ? " or " : ", ") + std::to_string(chip);
  return text;
}

/// Maximum amount of shared memory per thread block (CUDA C++ Programming Guide, technical specifications per compute
/// capability). On a CPU, shared tiles are arrays.
static int64_t sharedMemoryOf(int64_t chip) {
  switch (chip) {
  case 0:
    return int64_t(1) << 30;
  case 80:
  case 87:
    return 163 * 1024;
  case 86:
  case 89:
  case 120:
    return 99 * 1024;
  default:
    return 227 * 1024; // 90, 100
  }
}

std::optional<TargetInfo> TargetInfo::get(llvm::StringRef name, int64_t chip) {
  llvm::ArrayRef<int64_t> chips = chipsOf(name);
  if (chips.empty() || (chip && !llvm::is_contained(chips, chip)))
    return std::nullopt;
  bool isHopper = name == "sm_90a";
  TargetInfo info = {name, chip ? chip : chips.front(), 0, isHopper ? 16 : 1, isHopper};
  info.sharedMemory = sharedMemoryOf(info.chip);
  return info;
}
