/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* attnExplain, attnSupported, attnEquiv and attnWarm from C: how long answers last, and what is compiled. */
#include "attn-c/Attn.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static const char *module = "attn.problem @p mask(#attn.causal) layout(bshd) heads(2) dims(16) dtype(bf16)\n"
                            "attn.backward @g of(@p)";

static void ask(void) {
  const char *explained = NULL, *supported = NULL, *equal = NULL, *again = NULL;
  CHECK(attnExplain(module, NULL, "cpu", NULL, &explained) == 0);
  CHECK(attnSupported(module, NULL, NULL, &supported) == 0);
  CHECK(attnEquiv("#attn.causal", "#attn.full", &equal) == 0);
  /* Each answer stays until the next call of its own function that succeeds. */
  CHECK(attnExplain(module, NULL, "cpu", "{\"batch\": -1}", &again) != 0 && again == NULL);
  CHECK(strstr(attnLastError(), "`batch`, got: -1"));
  CHECK(strstr(explained, "\"text\": \"mask      #attn.causal\\nsizes     2 sequences;"));
  CHECK(strstr(supported, "\"name\": \"g\"") && strstr(supported, "\"target\": \"sm_90a\""));
  CHECK(strstr(equal, "\"verdict\": \"different\""));
  CHECK(attnExplain(module, "g", NULL, "{\"seqlen_q\": 64, \"svg\": true}", &explained) == 0);
  CHECK(strstr(explained, "\"svg\": \"<svg "));
  CHECK(attnCompileCount() == 0);

  CHECK(attnWarm(NULL, NULL, "cpu") != 0 && strcmp(attnLastError(), "expected a module's text, got: NULL") == 0);
  CHECK(attnWarm("attn.problem", NULL, "cpu") != 0 && strstr(attnLastError(), "is not a valid module"));
  CHECK(attnWarm("", NULL, "cpu") != 0);
  CHECK(strcmp(attnLastError(), "expected an `attn.problem` in the module, got: none") == 0);
  CHECK(attnWarm(module, "q", "cpu") != 0);
  CHECK(strcmp(attnLastError(), "expected one of the module's problems @p, @g, got: @q") == 0);
  CHECK(attnWarm(module, NULL, "sm_70") != 0 && strstr(attnLastError(), "got: sm_70"));
  CHECK(attnCompileCount() == 0);
}

/* With a target as its argument, warms the cache and asks nothing. */
int main(int argc, char **argv) {
  const char *target = argc > 1 ? argv[1] : "cpu";
  if (argc == 1)
    ask();
  int failed = attnWarm(module, "p", target);
  printf("forward: %s, %d\n", failed ? attnLastError() : "warm", (int)attnCompileCount());
  failed = attnWarm(module, NULL, target);
  printf("all: %s, %d\n", failed ? attnLastError() : "warm", (int)attnCompileCount());
  return 0;
}
