// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whose folders and files are read back. A kernel of the cache is code that this
// process runs, and the checksums beside it are no secret, so it counts only
// where nobody else can have written it:
//
//   - a folder of the cache, and a file in it, belongs to this process's user,
//     to root or to a user in $ATTN_CACHE_TRUST, and neither group nor others
//     may write to it;
//   - a folder above belongs to one of these too, and is writable by group or
//     others only if it is sticky, as /tmp is: nobody else can then put another
//     folder in the place of ours.
//
// Folders are opened one by one from "/" on and checked by descriptor, and files
// are read through the descriptor that was checked, so nothing can be swapped
// between the check and its use.
//
// In a container whose users are mapped, all owners that have no number inside
// are shown as one (the overflow id, 65534). That number is trusted only if it is
// named, even where it is this process's own; only a folder above the cache may
// have it ("/" often does), as its owner could do no more than put one trusted
// folder in the place of another.
//
#ifndef ATTN_RT_LIB_TRUST_H
#define ATTN_RT_LIB_TRUST_H

#include "Files.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

struct stat;

namespace attn::rt {

/// "0,1000" as numbers; empty where the text is no list of user ids.
std::optional<std::vector<uid_t>> parseOwners(std::string_view text);

/// A folder that was asked for. `distrust` says why it must not be used,
/// `error` is an errno otherwise; `fd` is open where both are empty.
struct Folder {
  Fd fd;
  int error = 0;
  std::string distrust;
  explicit operator bool() const { return static_cast<bool>(fd); }
  /// The reason, for a person; empty where the folder is open.
  std::string problem() const;
};

enum class Missing { Fails, IsMade };

/// Opens a folder of ours by its path and checks it and all above it. What is
/// made gets mode 0700 whatever the umask.
Folder openTrusted(const std::string &path, Missing missing);
/// Opens a folder of ours in `parent`, which is called `where` in messages; not
/// through a symbolic link.
Folder openTrustedAt(int parent, const std::string &name, const std::string &where, Missing missing);
/// Opens a folder in which folders of ours may be made: one that would do above
/// them, such as /tmp.
Folder openTrustedParent(const std::string &path, Missing missing);

/// Why a file of this status must not be read; empty if it may.
std::string distrustOfFile(const struct stat &info, const std::string &path);

/// Whole content of a file, if it is trusted. `distrust` says why it is not;
/// where neither is set there is no such regular file.
struct TrustedBytes {
  std::optional<std::string> bytes;
  std::string distrust;
};
TrustedBytes readTrustedAt(int directory, const std::string &name, const std::string &where);

/// Says once in this process why something is passed over, and how a cache is
/// shared on purpose.
void warnOfDistrust(const std::string &why);

} // namespace attn::rt

#endif // ATTN_RT_LIB_TRUST_H
