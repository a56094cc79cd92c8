// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `#attn.predicate`: a row sees the keys for which a condition holds.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -split-input-file -verify-diagnostics --test-mask-laws="size=6" | FileCheck %s --check-prefix=LAWS

// LAWS: mask laws hold for 20 masks

// Compares are printed one way round, parentheses only where they are needed.
// CHECK: mask(#attn.predicate<"(q - k) % 3 == 0 && k <= q">)
// GENERIC: mask = #attn.predicate<"(q - k) % 3 == 0 && k <= q">,
attn.problem @m0 mask(#attn.predicate<"(q - k) % 3 == 0 && q >= k">) layout(bshd) heads(12) dims(64) dtype(bf16)
// CHECK: mask(#attn.predicate<"kind[q] == 1 || kind_kv[k] == kind[q] && max(q - k, (q - k) * -1) < 2">)
// GENERIC: mask = #attn.predicate<"kind[q] == 1 || kind_kv[k] == kind[q] && max(q - k, (q - k) * -1) < 2">,
attn.problem @m1 mask(#attn.predicate<"kind[q] == 1 || (kind_kv[k] == kind[q] && abs(q - k) < 2)">) layout(bshd) heads(12) dims(64) dtype(bf16)
// CHECK: mask(#attn.predicate<"h < 4 || !(q / 2 == k / 2)">)
// GENERIC: mask = #attn.predicate<"h < 4 || !(q / 2 == k / 2)">,
attn.problem @m2 mask(#attn.predicate<"(h < 4 || q / 2 != (k) / 2)">) layout(bshd) heads(12) dims(64) dtype(bf16)
// CHECK: mask(#attn.predicate<"!((k - q - 1) / 2 * -1 == (q < 2 ? min(k, 3) : n[b] % 3) - (1 - k / 2))">)
// GENERIC: mask = #attn.predicate<"!((k - q - 1) / 2 * -1 == (q < 2 ? min(k, 3) : n[b] % 3) - (1 - k / 2))">,
attn.problem @m3 mask(#attn.predicate<"(k - q - 1) / 2 * -1 != (q < 2 ? min(k, 3) : n[b] % 3) - (1 - k / 2)">) layout(bshd) heads(12) dims(64) dtype(bf16)
// CHECK: mask(#attn.predicate<"!(a[h, q] <= k) || 1 < q && !(k % 2 == q % 2 || 1 < k - (q - len_q))">)
// GENERIC: mask = #attn.predicate<"!(a[h, q] <= k) || 1 < q && !(k % 2 == q % 2 || 1 < k - (q - len_q))">,
attn.problem @m4 mask(#attn.predicate<"!(a[h, q] <= k) || (q > 1 && !(k % 2 == q % 2 || k - (q - len_q) > 1))">) layout(bshd) heads(12) dims(64) dtype(bf16)
// CHECK: mask(#attn.predicate<"-2147483648 <= e[g, k]">)
// GENERIC: mask = #attn.predicate<"-2147483648 <= e[g, k]">,
attn.problem @m5 mask(#attn.predicate<"-2147483648 <= e[g, k]">) layout(bshd) heads(12) dims(64) dtype(bf16)
// CHECK: mask(#attn.predicate<"q * 2 < b % 4 + len_k - (len_q - k)">)
// GENERIC: mask = #attn.predicate<"q * 2 < b % 4 + len_k - (len_q - k)">,
attn.problem @m6 mask(#attn.predicate<"b % 4 + len_k - (len_q - k) > 2 * q">) layout(bshd) heads(12) dims(64) dtype(bf16)
// CHECK: mask(#attn.predicate<"h == 1 && q < k || !(h == 1) && 3 < q">)
// GENERIC: mask = #attn.predicate<"h == 1 && q < k || !(h == 1) && 3 < q">,
attn.problem @m7 mask(#attn.predicate<"h == 1 ? q < k : q > 3">) layout(bshd) heads(12) dims(64) dtype(bf16)
// What may pass 32 bits is computed in 64.
// CHECK: mask(#attn.predicate<"(q + k * 3) % 9 < 4 && k * 4 < q * 5 + 9">)
// GENERIC: mask = #attn.predicate<"(q + k * 3) % 9 < 4 && k * 4 < q * 5 + 9">,
attn.problem @m8 mask(#attn.predicate<"(q + k * 3) % 9 < 4 && 4 * k < q * 5 + 9">) layout(bshd) heads(12) dims(64) dtype(bf16)
// CHECK: mask(#attn.predicate<"(a[q] * 3000000000 - 2999999999 - k) / 4000000000 <= min(e[k] + 1, 5000000000)">)
// GENERIC: mask = #attn.predicate<"(a[q] * 3000000000 - 2999999999 - k) / 4000000000 <= min(e[k] + 1, 5000000000)">,
attn.problem @m9 mask(#attn.predicate<"(a[q] * 3000000000 - 2999999999 - k) / 4000000000 <= min(e[k] + 1, 5000000000)">) layout(bshd) heads(12) dims(64) dtype(bf16)
// CHECK: mask(#attn.predicate<"(a[q] - e[k]) % 7000000000 < (q < k ? 6999999999 : 3)">)
// GENERIC: mask = #attn.predicate<"(a[q] - e[k]) % 7000000000 < (q < k ? 6999999999 : 3)">,
attn.problem @m10 mask(#attn.predicate<"(a[q] - e[k]) % 7000000000 < (q < k ? 6999999999 : 3)">) layout(bshd) heads(12) dims(64) dtype(bf16)
// Shifts are products and quotients; `~x` is -1 - x.
// CHECK: mask(#attn.predicate<"(q / 2 & 1) == (k / 2 & 1) && (-1 - q) * 2 < (k - 2) * 4">)
// GENERIC: mask = #attn.predicate<"(q / 2 & 1) == (k / 2 & 1) && (-1 - q) * 2 < (k - 2) * 4">,
attn.problem @m11 mask(#attn.predicate<"(q >> 1 & 1) == (k >> 1 & 1) && ~q << 1 < k - 2 << 2">) layout(bshd) heads(12) dims(64) dtype(bf16)
// Operators of bits bind as in C, weaker than compares, and numbers are worked out.
// CHECK: mask(#attn.predicate<"!((q & 3 | (k ^ 5) & -5) == 4 + (h | b))">)
// GENERIC: mask = #attn.predicate<"!((q & 3 | (k ^ 5) & -5) == 4 + (h | b))">,
attn.problem @m12 mask(#attn.predicate<"((q & 3) | (k ^ 5) & ~(1 << 2)) != 4 + (h | b)">) layout(bshd) heads(12) dims(64) dtype(bf16)
// CHECK: mask(#attn.predicate<"((q | k) ^ q & k) < 3 || ((q ^ k) & -2) == 2">)
// GENERIC: mask = #attn.predicate<"((q | k) ^ q & k) < 3 || ((q ^ k) & -2) == 2">,
attn.problem @m13 mask(#attn.predicate<"((q | k) ^ (q & k)) < 3 || ((q ^ k) & -2) == 2">) layout(bshd) heads(12) dims(64) dtype(bf16)
// Entries of heads alone.
// CHECK: mask(#attn.predicate<"!((own[h] & seen[k]) == 0) || q - k < window[g]">)
// GENERIC: mask = #attn.predicate<"!((own[h] & seen[k]) == 0) || q - k < window[g]">,
attn.problem @m14 mask(#attn.predicate<"(own[h] & seen[k]) != 0 || q - k < window[g]">) layout(bshd) heads(12) dims(64) dtype(bf16)
// CHECK: mask(#attn.predicate<"(a[q] ^ -1 - e[k]) <= -2 && !((a[q] | e[k]) == -1) && (a[q] & e[k] & 6) == (q & 2)">)
// GENERIC: mask = #attn.predicate<"(a[q] ^ -1 - e[k]) <= -2 && !((a[q] | e[k]) == -1) && (a[q] & e[k] & 6) == (q & 2)">,
attn.problem @m15 mask(#attn.predicate<"(a[q] ^ ~e[k]) <= -2 && (a[q] | e[k]) != -1 && (a[q] & e[k] & 6) == (q & 2)">) layout(bshd) heads(12) dims(64) dtype(bf16)
// Bits of 64.
// CHECK: mask(#attn.predicate<"(a[q] * 1073741824 ^ -1 - e[k] * 2147483648) / 2147483648 < (q & 1) - (5000000000 & e[k]) && (a[q] * 3 & 255) < 250">)
// GENERIC: mask = #attn.predicate<"(a[q] * 1073741824 ^ -1 - e[k] * 2147483648) / 2147483648 < (q & 1) - (5000000000 & e[k]) && (a[q] * 3 & 255) < 250">,
attn.problem @m16 mask(#attn.predicate<"(a[q] << 30 ^ ~(e[k] << 31)) >> 31 < (q & 1) - (5000000000 & e[k]) && (a[q] * 3 & 255) < 250">) layout(bshd) heads(12) dims(64) dtype(bf16)
// CHECK: mask(#attn.predicate<"(q - k & 6) == 4 || (q & -4 | 1) <= k && !((k & 5) == 1)">)
// GENERIC: mask = #attn.predicate<"(q - k & 6) == 4 || (q & -4 | 1) <= k && !((k & 5) == 1)">,
attn.problem @m17 mask(#attn.predicate<"(q - k & 6) == 4 || (q & -4 | 1) <= k && (k & 5) != 1">) layout(bshd) heads(12) dims(64) dtype(bf16)
// CHECK: mask(#attn.predicate<"(q - k & 9223372036854775807) < 4 || (-1 - 9223372036854775807 | k) < q - 9223372036854775807">)
// GENERIC: mask = #attn.predicate<"(q - k & 9223372036854775807) < 4 || (-1 - 9223372036854775807 | k) < q - 9223372036854775807">,
attn.problem @m18 mask(#attn.predicate<"(q - k & 9223372036854775807) < 4 || (~9223372036854775807 | k) < q - 9223372036854775807">) layout(bshd) heads(12) dims(64) dtype(bf16)
// CHECK: mask(#attn.predicate<"((h ^ q) & 1) == own[h] - own[h] / 2 * 2 || (min(q, own[h]) & k ^ q) == (k | 0)">)
// GENERIC: mask = #attn.predicate<"((h ^ q) & 1) == own[h] - own[h] / 2 * 2 || (min(q, own[h]) & k ^ q) == (k | 0)">,
attn.problem @m19 mask(#attn.predicate<"((h ^ q) & 1) == own[h] - (own[h] >> 1 << 1) || (min(q, own[h]) & k ^ q) == (k | 0)">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1: it parses, and is a condition.
// expected-error @below {{expected a number, a name or `(` at the end}}
attn.problem @p mask(#attn.predicate<"q >">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected a condition, got: an integer at the end}}
attn.problem @p mask(#attn.predicate<"q + k">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected an operator or the end at `) || k` (character 5)}}
attn.problem @p mask(#attn.predicate<"q < 1) || k">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected a condition behind `!` at the end}}
attn.problem @p mask(#attn.predicate<"!q">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected two integers of `+`, before this at the end}}
attn.problem @p mask(#attn.predicate<"q + (k < 1)">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected two conditions of `&&`, before this at the end}}
attn.problem @p mask(#attn.predicate<"q < 1 && k">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected a condition before `?` at the end}}
attn.problem @p mask(#attn.predicate<"q ? k : 1">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected `:` at `, 1) < 2` (character 13)}}
attn.problem @p mask(#attn.predicate<"min(q < 1 ? k, 1) < 2">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected a positive number behind `/` or `%`, before this at `< 1` (character 6)}}
attn.problem @p mask(#attn.predicate<"q / 0 < 1">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected a number on one side of `*`, before this at `< 4` (character 6)}}
attn.problem @p mask(#attn.predicate<"q * k < 4">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected a number below 2^63 at `999999999999` (character 4)}}
attn.problem @p mask(#attn.predicate<"q < 99999999999999999999">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1: a name without a position.
// expected-error @below {{expected `q`, `k`, `b`, `h`, `len_q`, `len_k`, a function or an array with its position at `window` (character 8)}}
attn.problem @p mask(#attn.predicate<"q - k < window">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1: only what is sure to be there may be read.
// expected-error @below {{expected `ids[q]`, `[k]`, `[b]` or `[h]`, or for each head `[h, q]` (`g`: kv head), before this at `+ 1] == 3` (character 6)}}
attn.problem @p mask(#attn.predicate<"ids[q + 1] == 3">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected entries of `a` at one kind of position, before this at the end}}
attn.problem @p mask(#attn.predicate<"a[q] == a[k]">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C2: no integer leaves 64 bits.
// expected-error @below {{expected integers within 64 bits in a predicate (`min` and `max` bound them), got: from 9223372036854775808 to 9223372036854775808}}
attn.problem @p mask(#attn.predicate<"max(a[q], 9223372036854775807) + 1 < k || a[q] < 3">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C2: the product is beyond 64 bits before the number is subtracted.
// expected-error @below {{expected integers within 64 bits in a predicate (`min` and `max` bound them), got: from 0 to 618970609938500496155213824}}
attn.problem @p mask(#attn.predicate<"q * 1073741824 * 1073741824 < k">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C3: nested at most 64 deep.
// expected-error @below {{expected at most 64 levels of parentheses at `(q < 1))))))` (character 65)}}
attn.problem @p mask(#attn.predicate<"((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((q < 1))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C3
// expected-error @below {{expected at most 512 numbers of code at `}}
attn.problem @p mask(#attn.predicate<"q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q + q < k">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected an operator or the end at `and q > 3` (character 7); `and` is written `&&`}}
attn.problem @p mask(#attn.predicate<"q == k and q > 3">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected an operator or the end at `= k` (character 2); `=` is written `==`}}
attn.problem @p mask(#attn.predicate<"q = k">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// expected-error @below {{a function or an array with its position at `not q == k` (character 0); `not` is written `!`}}
attn.problem @p mask(#attn.predicate<"not q == k">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected an operator or the end at `& k < 2` (character 6); `&` is written `&&`}}
attn.problem @p mask(#attn.predicate<"q < 1 & k < 2">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// expected-error @below {{expected an operator or the end at `| (k < 2)` (character 8); `|` is written `||`}}
attn.problem @p mask(#attn.predicate<"(q < 1) | (k < 2)">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1: C reads it as q & (1 == 0), which nobody means.
// expected-error @below {{expected parentheses where `&` of integers meets a compare, which binds tighter, as in C, at `& 1 == 0` (character 2)}}
attn.problem @p mask(#attn.predicate<"q & 1 == 0">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected parentheses where `^` of integers meets a compare, which binds tighter, as in C, at `^ k` (character 7)}}
attn.problem @p mask(#attn.predicate<"q == 1 ^ k">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected parentheses where `&` of integers meets a compare, which binds tighter, as in C, at `& k < 3` (character 6)}}
attn.problem @p mask(#attn.predicate<"h | q & k < 3">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected two integers of `&`, before this at the end}}
attn.problem @p mask(#attn.predicate<"q & (1 == 0)">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected two integers of `^`, before this at the end}}
attn.problem @p mask(#attn.predicate<"(q < 1) ^ (k < 1)">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected a number from 0 to 62 behind `<<`, before this at `< k` (character 8)}}
attn.problem @p mask(#attn.predicate<"q << 63 < k">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected a number from 0 to 62 behind `>>`, before this at `< 1` (character 7)}}
attn.problem @p mask(#attn.predicate<"q >> k < 1">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected an integer behind `~` at the end}}
attn.problem @p mask(#attn.predicate<"~(q < k)">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1: an array of heads has no other positions.
// expected-error @below {{expected entries of `own` at one kind of position, before this at the end}}
attn.problem @p mask(#attn.predicate<"own[h] == own[h, q]">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C1
// expected-error @below {{expected `own[q]`, `[k]`, `[b]` or `[h]`, or for each head `[h, q]` (`g`: kv head), before this at `] == 1` (character 6)}}
attn.problem @p mask(#attn.predicate<"own[h,] == 1">) layout(bshd) heads(12) dims(64) dtype(bf16)

// -----

// C2: a shift multiplies.
// expected-error @below {{expected integers within 64 bits in a predicate (`min` and `max` bound them), got: from 0 to 9223380832947798016}}
attn.problem @p mask(#attn.predicate<"q << 31 << 1 << 1 << 1 < k">) layout(bshd) heads(12) dims(64) dtype(bf16)
