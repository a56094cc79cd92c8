// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/Pack.h"
#include "Digest.h"
#include "Files.h"
#include "Processor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace attn::rt;
using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little);
static constexpr std::string_view kMagic = "attnpack";
namespace {
struct Header {
  char magic[8];
  uint32_t version, abiVersion;
  uint64_t indexBytes;
  uint8_t hash[32];
};
static_assert(sizeof(Header) == 56 && offsetof(Header, hash) == 24);
} // namespace

static Error error(std::string message) { return Error{std::move(message), {}, {}}; }

/// The digest of a file: of all but the digest itself.
static void writeHash(const Header &header, std::string_view rest, uint8_t (&hash)[32]) {
  std::string bytes(reinterpret_cast<const char *>(&header), offsetof(Header, hash));
  std::string hex = sha256(bytes.append(rest));
  for (size_t i = 0; i < sizeof hash; ++i)
    hash[i] = static_cast<uint8_t>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
}

//===--------------------------------------------------------------------===//
// Written
//===--------------------------------------------------------------------===//

std::string Pack::toBytes() const {
  std::string binaries;
  Json list = Json::array();
  for (const PackedProgram &packed : programs) {
    Json kernels = Json::array();
    for (const LoadedProgram::Kernel &kernel : packed.kernels) {
      kernels.push_back({{"artifact", Json::parse(kernel->artifact.toJson(/*withSource=*/false))},
                         {"offset", binaries.size()},
                         {"bytes", kernel->binary.size()}});
      binaries += kernel->binary;
    }
    Json item = {{"name", packed.name},
                 {"target", packed.target},
                 {"schedule", packed.schedule},
                 {"features", packed.features},
                 {"program", Json::parse(packed.program.toJson())},
                 {"kernels", std::move(kernels)}};
    if (packed.expected)
      item["expected"] = {packed.expected->queries, packed.expected->keys};
    list.push_back(std::move(item));
  }
  std::string index = Json{{"programs", std::move(list)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  Header header = {};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.version = kVersion, header.abiVersion = kAbiVersion;
  header.indexBytes = index.size();
  index += binaries;
  writeHash(header, index, header.hash);
  return std::string(reinterpret_cast<const char *>(&header), sizeof header) + index;
}

//===--------------------------------------------------------------------===//
// Read
//===--------------------------------------------------------------------===//

namespace {
/// What is read has the right checksum, so all but other versions is for whoever wrote the file; it is not believed all
/// the same.
class IndexReader {
public:
  explicit IndexReader(std::string_view binaries) : binaries(binaries) {}
  std::string bad; ///< the first field that is not what it has to be, or an error

  void read(const Json &item, PackedProgram &to) {
    text(item, "name", to.name), text(item, "target", to.target), text(item, "schedule", to.schedule);
    each(item, "features", [&](const Json &feature) {
      feature.is_string() ? to.features.push_back(feature.get<std::string>()) : fail("features");
    });
    if (item.is_object() && item.contains("expected")) {
      to.expected.emplace();
      const Json &lengths = item["expected"];
      bool fits =
          lengths.is_array() && lengths.size() == 2 && lengths[0].is_number_integer() && lengths[1].is_number_integer();
      fits ? (to.expected->queries = lengths[0].get<int64_t>(), to.expected->keys = lengths[1].get<int64_t>(), void())
           : fail("expected");
    }
    if (item.is_object() && item.contains("program")) {
      Result<Program> program = Program::fromJson(item["program"].dump());
      program ? to.program = std::move(*program), void() : fail("program", program.error().message);
    } else {
      fail("program");
    }
    each(item, "kernels", [&](const Json &kernel) { readKernel(kernel, to); });
    if (bad.empty() && (to.kernels.empty() || to.kernels.size() != to.program.kernels.size()))
      fail("kernels");
  }
  void fail(std::string_view field, std::string_view why = "") {
    if (bad.empty())
      bad = fmt::format("`{}`{}{}", field, why.empty() ? "" : ": ", why);
  }

private:
  void text(const Json &item, const char *name, std::string &to) {
    bool fits = item.is_object() && item.contains(name) && item[name].is_string();
    fits ? to = item[name].get<std::string>(), void() : fail(name);
  }
  template <typename Visit> void each(const Json &item, const char *name, Visit visit) {
    if (!item.is_object() || !item.contains(name) || !item[name].is_array())
      return fail(name);
    for (const Json &entry : item[name])
      visit(entry);
  }
  uint64_t number(const Json &item, const char *name) {
    bool fits = item.is_object() && item.contains(name) && item[name].is_number_unsigned();
    if (!fits)
      fail(name);
    return fits ? item[name].get<uint64_t>() : 0;
  }
  void readKernel(const Json &item, PackedProgram &to) {
    auto kernel = std::make_shared<CompiledKernel>();
    uint64_t offset = number(item, "offset"), bytes = number(item, "bytes");
    if (offset > binaries.size() || bytes > binaries.size() - offset)
      return fail("bytes");
    if (!item.is_object() || !item.contains("artifact"))
      return fail("artifact");
    Result<Artifact> artifact = Artifact::fromJson(item["artifact"].dump());
    if (!artifact)
      return fail("artifact", artifact.error().message);
    if (artifact->isHost() != to.isHost())
      return fail("target");
    kernel->artifact = std::move(*artifact);
    kernel->binary = binaries.substr(offset, bytes);
    kernel->origin = CompiledKernel::Origin::Disk;
    to.kernels.push_back(std::move(kernel));
  }

  std::string_view binaries;
};
} // namespace

Result<Pack> Pack::fromBytes(std::string_view bytes) {
  Header header = {};
  if (bytes.size() < kMagic.size() || bytes.substr(0, kMagic.size()) != kMagic)
    return error("expected a pack of attnc (`attn-cache pack` makes them), got: another file");
  std::memcpy(&header, bytes.data(), std::min(bytes.size(), sizeof header));
  if (bytes.size() >= 16 && header.version != kVersion)
    return error(fmt::format("expected a pack of version {}, got: {}", kVersion, header.version));
  if (bytes.size() >= 16 && header.abiVersion != kAbiVersion)
    return error(fmt::format("expected a pack for interface version {} of the runtime, got: {}", kAbiVersion,
                             header.abiVersion));
  std::string_view rest = bytes.substr(std::min(bytes.size(), sizeof header));
  uint8_t hash[32];
  writeHash(header, rest, hash);
  if (bytes.size() < sizeof header || header.indexBytes > rest.size() || std::memcmp(hash, header.hash, sizeof hash))
    return error("expected a whole pack, got: one that is truncated or damaged (its checksum is another)");
  Json json = Json::parse(rest.substr(0, header.indexBytes), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("programs") || !json["programs"].is_array())
    return error("expected programs in the index of a pack, got: none");
  Pack pack;
  IndexReader reader(rest.substr(header.indexBytes));
  for (const Json &item : json["programs"])
    reader.read(item, pack.programs.emplace_back());
  if (!reader.bad.empty())
    return error("expected a pack whose index is sound, got: a bad field " + reader.bad);
  return pack;
}

Result<Pack> Pack::read(const std::string &path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  int failed = !fd || ::fstat(fd.get(), &status) ? errno
               : S_ISREG(status.st_mode)         ? 0
               : S_ISDIR(status.st_mode)         ? EISDIR
                                                 : EINVAL;
  std::optional<std::string> bytes = failed ? std::nullopt : readWhole(fd.get());
  if (!bytes)
    return error(fmt::format("cannot read `{}`: {}", path, std::strerror(failed ? failed : EIO)));
  Result<Pack> pack = fromBytes(*bytes);
  if (!pack)
    return error(fmt::format("`{}`: {}", path, pack.error().message));
  return pack;
}

//===--------------------------------------------------------------------===//
// Found
//===--------------------------------------------------------------------===//

Result<const PackedProgram *> Pack::find(std::string_view name, std::string_view chip) const {
  std::vector<std::string> known;
  const PackedProgram *found = nullptr;
  bool isOne = true;
  for (const PackedProgram &program : programs) {
    isOne = isOne && program.name == programs.front().name;
    if (program.expected)
      continue;
    known.push_back(fmt::format("@{} for {}", program.name, program.chip()));
    if (!found && (name.empty() || program.name == name) && program.chip() == chip)
      found = &program;
  }
  if (name.empty() && !isOne)
    return error(fmt::format("expected the name of one of {}, got: none", fmt::join(known, ", ")));
  if (known.empty())
    return error("expected a pack with programs, got: an empty one");
  if (!found)
    return error(fmt::format("expected one of {}, got: {}{} for {}", fmt::join(known, ", "), name.empty() ? "" : "@",
                             name.empty() ? "a program" : name, chip));
  return found;
}

const PackedProgram *Pack::findSpecialized(const PackedProgram &general, const ExpectedLengths &expected) const {
  for (const PackedProgram &program : programs)
    if (program.expected == expected && program.name == general.name && program.target == general.target)
      return &program;
  return nullptr;
}

Result<std::shared_ptr<const LoadedProgram>> attn::rt::load(const PackedProgram &packed) {
  if (packed.isHost()) {
    std::vector<std::string> here = processorFeatures(), missing;
    std::set_difference(packed.features.begin(), packed.features.end(), here.begin(), here.end(),
                        std::back_inserter(missing));
    if (!missing.empty())
      return error(
          fmt::format("expected a CPU with {} for @{}, got: one without", fmt::join(missing, ", "), packed.name));
  }
  return LoadedProgram::load(packed.program, packed.kernels);
}
