// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.score`: what an expression makes of a score.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics | attn-opt -split-input-file | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// Where integers meet real numbers they become some; numbers do at once.
// CHECK: score([#attn.score<"s - 0.1 * max(q - k, (q - k) * -1)">])
// GENERIC: score = [#attn.score<"s - 0.1 * max(q - k, (q - k) * -1)">]
attn.problem @p0 mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s - 0.1*abs(q-k)">])
// CHECK: score([#attn.score<"s * 2.0 + -3.0">])
attn.problem @p1 mask(#attn.causal) layout(thd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"(s * 2) + (-3.0)">])
// CHECK: score([#attn.score<"gate[h] * tanh(s / gate[h]) + pairs[b, h, q, k] - (log(1.0 + s * s) - rows[b, q])">])
attn.problem @p2 mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
  score([#attn.score<"gate[h] * tanh(s / gate[h]) + pairs[b,h,q,k] - (log(1.0 + s * s) - rows[b, q])">])
// CHECK: score([#attn.score<"q / 16 == k / 16 && 1.5 <= s ? sqrt(abs(s)) : min(s, exp(s * -1.0 / 2.0))">, #attn.softcap<{{.*}}>, #attn.score<"h % 2">])
attn.problem @p3 mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
  score([#attn.score<"q / 16 == k / 16 && s >= 1.5 ? sqrt(abs(s)) : min(s, exp(-s / 2))">, #attn.softcap<3.0>, #attn.score<"h % 2">])
// CHECK: score([#attn.score<"s * 1000.0 - 0.01">])
attn.problem @exponents mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s * 1e3 - 1E-2">])
// CHECK: score([#attn.score<"s * 1.25e-05 + 1.0e+20">])
attn.problem @p4 mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s * 0.0000125 + 1.0e20">])
// Bits and shifts are integers'.
// CHECK: score([#attn.score<"s + 0.5 * (q / 4 & k * 2 ^ -1 - h | 1) - ((q & 1) == 0 ? 1 : 0)">])
attn.problem @p5 mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16)
  score([#attn.score<"s + 0.5 * (q >> 2 & k << 1 ^ ~h | 1) - ((q & 1) == 0 ? 1 : 0)">])

// -----

// C1: it parses, and is a number.
// expected-error @below {{expected a score, got: a condition at the end}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s < 1">])

// -----

// C1
// expected-error @below {{expected integers on both sides of `==`, before this}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s == 1 ? s : 0.0">])

// -----

// C1
// expected-error @below {{expected integers on both sides of `%`, before this}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s % 3">])

// -----

// C1
// expected-error @below {{expected positions of `bias` as some of `b, h, q, k`, in this order}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s + bias[k, q]">])

// -----

// C1: an array by distance is a modifier of its own.
// expected-error @below {{expected positions of `pos` as some of `b, h, q, k`, in this order (#attn.relative_bias reads an array by the distance of q and k), at `- k]` (character 10)}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s + pos[q - k]">])

// -----

// C1
// expected-error @below {{expected entries of `bias` at one kind of position, before this}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"bias[q] * s + bias[k]">])

// -----

// C1
// expected-error @below {{expected `s`, `q`, `k`, `b`, `h`, `len_q`, `len_k`, a function or an array with its position at `t`}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s + t">])

// -----

// C1
// expected-error @below {{expected two numbers of `+`, before this}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s + (q < k)">])

// -----

// C1
// expected-error @below {{expected a number up to 2^100}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s * 1.0e31">])

// -----

// C2: no integer leaves 64 bits.
// expected-error @below {{expected integers within 64 bits in a score (`min` and `max` bound them), got: from 0 to}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s + q * 1073741824 * 64">])

// -----

// expected-error @below {{expected a number, such as 1e-3 at `1e + s` (character 4)}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s * 1e + s">])

// -----

// A predicate knows no real numbers.
// expected-error @below {{expected an operator or the end at `.5`}}
attn.problem @p mask(#attn.predicate<"q < 1.5">) layout(bshd) heads(8, 2) dims(64) dtype(bf16)

// -----

// C13 of the problem.
// expected-error @below {{expected a dense layout of what a bias has an axis of}}
attn.problem @p mask(#attn.causal) layout(thd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s + bias[q]">])

// -----

// C1
// expected-error @below {{expected integers on both sides of `&`, before this at `)` (character 10)}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s + (s & 3)">])

// -----

// C1
// expected-error @below {{expected integers on both sides of `<<`, before this}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s << 1">])

// -----

// C1
// expected-error @below {{expected an integer behind `~`}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"s + ~s">])

// -----

// C1
// expected-error @below {{expected parentheses where `&` of integers meets a compare, which binds tighter, as in C, at `& 1 == 0}}
attn.problem @p mask(#attn.causal) layout(bshd) heads(8, 2) dims(64) dtype(bf16) score([#attn.score<"q & 1 == 0 ? s : 0.0">])
