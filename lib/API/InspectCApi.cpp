// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CApi.h"
#include "attn-c/Attn.h"
#include "attn/API/Describe.h"
#include "attn/API/Jit.h"
#include "attn/API/Warm.h"
#include "attn/Inspect/InspectJson.h"
#include <fmt/format.h>

using namespace attn;

/// Hands out an answer that `kept` keeps, or what went wrong.
static int give(rt::Result<std::string> answer, std::string &kept, const char **json) {
  if (!answer)
    return fail(answer.error());
  kept = std::move(*answer);
  *json = kept.c_str();
  return 0;
}

template <typename T> static rt::Result<std::string> toJsonIfAny(const rt::Result<T> &answer) {
  return answer ? rt::Result<std::string>(toJson(*answer)) : answer.error();
}

int attnDescribe(const char *mlir, const char *name, const char **json) {
  if (!mlir || !json)
    return fail({"expected a module's text and where to put the description, got: NULL"});
  static thread_local std::string kept;
  return give(describe(mlir, name ? name : ""), kept, json);
}

int attnExplain(const char *mlir, const char *name, const char *target, const char *options_json, const char **json) {
  if (!mlir || !json)
    return fail({"expected a module's text and where to put the explanation, got: NULL"});
  rt::Result<Target> parsed = Target::parse(target ? target : "");
  if (!parsed)
    return fail(parsed.error());
  rt::Result<ExplainRequest> request = parseExplainOptions(options_json ? options_json : "{}");
  if (!request)
    return fail(request.error());
  static thread_local std::string kept;
  return give(toJsonIfAny(explain(mlir, name ? name : "", *parsed, std::move(*request))), kept, json);
}

int attnSupported(const char *mlir, const char *name, const char *targets, const char **json) {
  if (!mlir || !json)
    return fail({"expected a module's text and where to put the answers, got: NULL"});
  rt::Result<std::vector<Target>> parsed = parseTargets(targets ? targets : "cpu,sm_80,sm_90a");
  if (!parsed)
    return fail(parsed.error());
  static thread_local std::string kept;
  return give(toJsonIfAny(supportOf(mlir, name ? name : "", *parsed)), kept, json);
}

int attnEquiv(const char *mask_a, const char *mask_b, const char **json) {
  if (!mask_a || !mask_b || !json)
    return fail({"expected two masks' texts and where to put the answer, got: NULL"});
  static thread_local std::string kept;
  return give(toJsonIfAny(compareMaskTexts(mask_a, mask_b)), kept, json);
}

int attnWarm(const char *mlir, const char *name, const char *target) {
  if (!mlir)
    return fail({"expected a module's text, got: NULL"});
  rt::Result<Target> parsed = Target::parse(target ? target : "");
  if (!parsed)
    return fail(parsed.error());
  rt::Cache &cache = processCache();
  if (std::string why = cache.whyPassedOver(); !why.empty())
    return fail({"expected a cache that nobody else may write to, got: " + why});
  if (cache.root().empty() && cache.roots().empty())
    return fail(
        {"expected a cache on disk, got: none ($ATTN_NO_CACHE and $ATTN_CACHE_SIZE=0 turn it off, $ATTN_CACHE_DIR "
         "says where it is)"});
  std::string missing;
  rt::Status warmed = warm(cache, mlir, name ? name : "", *parsed, [&](const rt::CompiledKernel &kernel) {
    if (kernel.directory.empty())
      missing = kernel.artifact.name;
  });
  if (!warmed)
    return fail(warmed.error());
  if (!missing.empty())
    return fail({fmt::format("expected a cache directory that takes `{}`, got: {}", missing,
                             cache.root().empty() ? "read-only ones" : "`" + cache.root() + "`, which does not")});
  return 0;
}
