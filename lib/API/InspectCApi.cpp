// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CApi.h"
#include "attn-c/Attn.h"
#include "attn/API/Describe.h"
#include "attn/API/Jit.h"
#include "attn/Inspect/InspectJson.h"

using namespace attn;

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
    return fail(request.error(), rt::ErrorKind::Problem);
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
