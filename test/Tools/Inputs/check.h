/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* For programs in C that test the C interface. Wants stdio.h, stdlib.h and attn-c/Attn.h. */
#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: not so: %s; last error: %s\n", __FILE__, __LINE__, #condition, attnLastError());         \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)
