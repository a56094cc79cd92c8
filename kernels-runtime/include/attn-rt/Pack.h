// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs with their binaries in one file, for machines without compilers.
//
//   offset 0   "attnpack"
//          8   u32: version of the file's form, 1
//         12   u32: version of the runtime's interface (`kAbiVersion`)
//         16   u64: bytes of the index
//         24   SHA-256 of all before and behind it, 32 bytes
//         56   the index, JSON: names, targets, programs, artifacts, where binaries lie
//              binaries, one behind another
//
// Numbers are little-endian.
//
#ifndef ATTN_RT_PACK_H
#define ATTN_RT_PACK_H

#include "attn-rt/LoadedProgram.h"
#include "attn-rt/Result.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn::rt {

/// A program for one target.
struct PackedProgram {
  std::string name;                        ///< of the pass
  std::string target;                      ///< "cpu", "sm_90a", "sm_80:89", ...: what it was lowered for
  std::string schedule;                    ///< for a reader
  std::optional<ExpectedLengths> expected; ///< what it is specialised for; nothing: it is the general one
  std::vector<std::string> features;       ///< instruction sets that its code needs (`Compiler::features`)
  Program program;
  std::vector<LoadedProgram::Kernel> kernels; ///< numbered as the program's; without sources

  bool isHost() const { return target == "cpu"; }
  /// What its code runs on: "cpu", "sm_90a", "sm_89", ...
  const std::string &chip() const { return kernels.front()->artifact.target; }
};

class Pack {
public:
  static constexpr uint32_t kVersion = 1;
  std::vector<PackedProgram> programs;

  std::string toBytes() const;
  /// A file that is truncated or damaged, of another version, or no pack at all is an error that says so.
  static Result<Pack> fromBytes(std::string_view bytes);
  static Result<Pack> read(const std::string &path);

  /// The general program of the pass `name` for `chip` ("cpu", "sm_90a", ...); the name may be empty if all programs
  /// are of one pass. An error says what the pack has.
  Result<const PackedProgram *> find(std::string_view name, std::string_view chip) const;
  /// The program that is specialised for such lengths, of the same pass and target; null: there is none.
  const PackedProgram *findSpecialized(const PackedProgram &general, const ExpectedLengths &expected) const;
};

/// Loads a program. A CPU that lacks what it needs is an error that names it.
Result<std::shared_ptr<const LoadedProgram>> load(const PackedProgram &program);

} // namespace attn::rt

#endif // ATTN_RT_PACK_H
