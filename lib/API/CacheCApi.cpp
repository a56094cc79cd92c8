// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cache on disk and packs, for programs: what attn-cache does.
//
#include "CApi.h"
#include "attn-c/Attn.h"
#include "attn/API/MakePack.h"
#include "attn/API/Warm.h"
#include "attn/Inspect/Support.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace attn;
using Json = nlohmann::ordered_json;

/// The cache, if this process may use it at all.
static rt::Result<rt::Cache *> usableCache() {
  rt::Cache &cache = processCache();
  if (std::string why = cache.whyPassedOver(); !why.empty())
    return rt::Error{"expected a cache that nobody else may write to, got: " + why};
  if (cache.root().empty() && cache.roots().empty())
    return rt::Error{"expected a cache on disk, got: none ($ATTN_NO_CACHE and $ATTN_CACHE_SIZE=0 turn it off, "
                     "$ATTN_CACHE_DIR says where it is)"};
  return &cache;
}

int attnWarm(const char *mlir, const char *name, const char *target) {
  if (!mlir)
    return fail({"expected a module's text, got: NULL"});
  rt::Result<Target> parsed = Target::parse(target ? target : "");
  if (!parsed)
    return fail(parsed.error());
  rt::Result<rt::Cache *> cache = usableCache();
  if (!cache)
    return fail(cache.error());
  std::string missing;
  rt::Status warmed = warm(**cache, mlir, name ? name : "", *parsed, [&](const rt::CompiledKernel &kernel) {
    if (kernel.directory.empty())
      missing = kernel.artifact.name;
  });
  if (!warmed)
    return fail(warmed.error(), rt::ErrorKind::Compile);
  if (!missing.empty())
    return fail(
        {fmt::format("expected a cache directory that takes `{}`, got: {}", missing,
                     (*cache)->root().empty() ? "read-only ones" : "`" + (*cache)->root() + "`, which does not")});
  return 0;
}

int attnCacheList(int deep, const char **json) {
  if (!json)
    return fail({"expected where to put the list, got: NULL"});
  rt::Result<rt::Cache *> cache = usableCache();
  if (!cache)
    return fail(cache.error());
  Json list = Json::array();
  auto textOrNull = [](const std::string &text) { return text.empty() ? Json() : Json(text); };
  for (const rt::CacheRoot &root : (*cache)->roots(deep != 0)) {
    Json entries = Json::array();
    for (const rt::EntryInfo &entry : root.entries) {
      auto target = llvm::find_if(entry.key, [](auto &field) { return field.first == "target"; });
      entries.push_back({{"kernel", entry.kernel},
                         {"target", target == entry.key.end() ? Json() : Json(target->second)},
                         {"bytes", entry.bytes},
                         {"built", entry.builtAt},
                         {"used", entry.usedAt},
                         {"resources", entry.report.str()},
                         {"directory", entry.directory},
                         {"problem", textOrNull(entry.problem)}});
    }
    list.push_back({{"path", root.path},
                    {"read_only", root.readOnly},
                    {"problem", textOrNull(root.problem)},
                    {"entries", std::move(entries)}});
  }
  static thread_local std::string kept;
  return give(list.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n", kept, json);
}

int attnCachePrune(int64_t bytes, int *removed) {
  if (bytes < -1)
    return fail({fmt::format("expected bytes to keep, or -1 for the limit in force, got: {}", bytes)});
  rt::Result<rt::Cache *> cache = usableCache();
  if (!cache)
    return fail(cache.error());
  int bad = (*cache)->removeBad();
  int old = (*cache)->prune(bytes < 0 ? rt::CacheOptions::fromEnvironment().maxBytes : uint64_t(bytes));
  if (removed)
    *removed = bad + old;
  return 0;
}

int attnPack(const char *mlir, const char *targets, const char *const *sizes, int size_count, const char *path) {
  if (!mlir || !targets || !path || (size_count > 0 && !sizes))
    return fail({"expected a module's text, targets and a path, got: NULL"});
  rt::Result<std::vector<Target>> parsed = parseTargets(targets);
  if (!parsed)
    return fail(parsed.error());
  std::vector<PackSizes> shapes;
  for (int i = 0; i < size_count; ++i) {
    rt::Result<PackSizes> shape = PackSizes::parse(sizes[i] ? sizes[i] : "");
    if (!shape)
      return fail(shape.error());
    shapes.push_back(std::move(*shape));
  }
  rt::Result<std::vector<std::string>> names = passesOf(mlir);
  if (!names)
    return fail(names.error(), rt::ErrorKind::Problem);
  rt::Pack pack;
  for (const Target &target : *parsed)
    for (const std::string &name : *names)
      if (rt::Status added = addToPack(pack, processCache(), mlir, name, target, shapes); !added)
        return fail(added.error(), rt::ErrorKind::Compile);
  rt::Status written = writePack(pack, shapes, path);
  return written ? 0 : fail(written.error());
}
