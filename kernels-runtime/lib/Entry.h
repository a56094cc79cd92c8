// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One directory of the cache: how it is written, found good or bad, and
// published. Cache.h describes the files.
//
#ifndef ATTN_RT_LIB_ENTRY_H
#define ATTN_RT_LIB_ENTRY_H

#include "attn-rt/Cache.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attn::rt {

/// Format of entry.json and its neighbours. Entries live in `<root>/v<format>`;
/// another number is another world.
inline constexpr int kCacheFormat = 3;

struct EntryFile {
  std::string name;
  uint64_t bytes = 0;
  std::string sha256;
};

/// entry.json.
struct EntryRecord {
  std::string kernel;
  std::string digest;
  int64_t builtAt = 0;
  KeyFields key;
  ResourceReport report;
  std::vector<EntryFile> files;

  std::string toJson() const;
  /// Empty where the text is damaged, of another format, or doesn't match its
  /// own checksum.
  static std::optional<EntryRecord> fromJson(std::string_view text);
};

/// 64 hex digits over all fields.
std::string digestOf(const KeyFields &key);
/// `<kernel>-<first 32 digits>`.
std::string entryName(std::string_view kernel, std::string_view digest);

/// What is in an entry's directory.
struct EntryContent {
  enum class State { Good, Missing, Bad, Distrusted } state = State::Missing;
  std::string problem; ///< when Bad, or Distrusted: others may have written it (Trust.h)
  EntryRecord record;
  std::string file; ///< bytes of the file asked for, checked
};

/// The folder of all entries, opened and checked.
struct EntryFolder {
  int fd;
  const std::string &path;
};

/// Reads and checks entry.json and the file `wanted` (none if empty) of the
/// entry `name`, and all the other files too if `deep`. An empty `digest` matches
/// all.
EntryContent readEntry(EntryFolder all, const std::string &name, std::string_view digest, std::string_view wanted,
                       bool deep);
/// Marks the entry as used now.
void touchEntry(EntryFolder all, const std::string &name);

enum class Published { Ours, Theirs, Replaced };
/// Puts an entry with these files among `all`, whole or not at all. Theirs: a
/// good one was there already, and none of its files has the digest `useless`.
/// The error message is a reason ("no space left on device").
Result<Published> publishEntry(EntryFolder all, EntryRecord record,
                               const std::vector<std::pair<std::string, std::string_view>> &files,
                               std::string_view useless = {});
/// Takes an entry away, at once for readers.
void removeEntry(EntryFolder all, const std::string &name);

} // namespace attn::rt

#endif // ATTN_RT_LIB_ENTRY_H
