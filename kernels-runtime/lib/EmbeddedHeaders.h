// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The headers below device/attn and host/attn as text; the definitions are written
// by cmake/EmbedHeaders.cmake.
//
#ifndef ATTN_RT_LIB_EMBEDDEDHEADERS_H
#define ATTN_RT_LIB_EMBEDDEDHEADERS_H

namespace attn::rt {

struct EmbeddedHeader {
  const char *name; ///< as included: "attn/mma/fragment.cuh"
  const char *text;
};

struct EmbeddedHeaders {
  const EmbeddedHeader *headers; ///< ends with a null name
  const char *digest;            ///< SHA-256 over names and texts, 64 hex digits
};

extern const EmbeddedHeaders deviceHeaderSet;
extern const EmbeddedHeaders hostHeaderSet;

} // namespace attn::rt

#endif // ATTN_RT_LIB_EMBEDDEDHEADERS_H
