// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ops around attention refuse: their constraints, by number, and bad text.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// attn.compress. C1: a way to compress.
// expected-error @below {{'attn.compress' op expected `mean`, the way to compress, got: none}}
attn.compress @p length(32) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.compress' op expected a length from 1 to 65536 that a positive stride divides, got: length(0) stride(1)}}
attn.compress @p mean length(0) stride(1) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.compress' op expected a length from 1 to 65536 that a positive stride divides, got: length(16) stride(0)}}
attn.compress @p mean length(16) stride(0) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.compress' op expected a length from 1 to 65536 that a positive stride divides, got: length(16) stride(32)}}
attn.compress @p mean length(16) stride(32) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.compress' op expected a length from 1 to 65536 that a positive stride divides, got: length(32) stride(12)}}
attn.compress @p mean length(32) stride(12) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.compress' op expected a length from 1 to 65536 that a positive stride divides, got: length(65537) stride(1)}}
attn.compress @p mean length(65537) stride(1) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.compress' op expected a length from 1 to 65536 that a positive stride divides, got: length(-16) stride(16)}}
attn.compress @p mean length(-16) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.compress' op expected a length from 1 to 65536 that a positive stride divides, got: length(16) stride(-16)}}
attn.compress @p mean length(16) stride(-16) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.compress' op expected 1 to 65536 heads, got: 0}}
attn.compress @p mean length(32) stride(16) layout(thd) heads(0) dims(128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.compress' op expected 1 to 65536 heads, got: 65537}}
attn.compress @p mean length(32) stride(16) layout(thd) heads(65537) dims(128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.compress' op expected 1 to 65536 heads, got: -1}}
attn.compress @p mean length(32) stride(16) layout(thd) heads(-1) dims(128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.compress' op expected a head dim that is a multiple of 8 from 8 to 512, got: 0}}
attn.compress @p mean length(32) stride(16) layout(thd) heads(4) dims(0) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.compress' op expected a head dim that is a multiple of 8 from 8 to 512, got: 4}}
attn.compress @p mean length(32) stride(16) layout(thd) heads(4) dims(4) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.compress' op expected a head dim that is a multiple of 8 from 8 to 512, got: 520}}
attn.compress @p mean length(32) stride(16) layout(thd) heads(4) dims(520) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.compress' op expected a head dim that is a multiple of 8 from 8 to 512, got: 12}}
attn.compress @p mean length(32) stride(16) layout(thd) heads(4) dims(128, 12) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.compress' op expected a head dim that is a multiple of 8 from 8 to 512, got: 12}}
attn.compress @p mean length(32) stride(16) layout(thd) heads(4) dims(12, 128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.compress' op expected a head dim that is a multiple of 8 from 8 to 512, got: -8}}
attn.compress @p mean length(32) stride(16) layout(thd) heads(4) dims(-8) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.compress' op expected one head dim beside `k_only`, got: dims(128, 64)}}
attn.compress @p mean k_only length(32) stride(16) layout(thd) heads(4) dims(128, 64) dtype(bf16)

// -----

// C4
// expected-error @below {{'attn.compress' op expected dtype bf16, f16 or f32, got: 'i32'}}
attn.compress @p mean length(32) stride(16) layout(thd) heads(4) dims(128) dtype(i32)

// -----

// C4
// expected-error @below {{'attn.compress' op expected dtype bf16, f16 or f32, got: 'f64'}}
attn.compress @p mean length(32) stride(16) layout(thd) heads(4) dims(128) dtype(f64)

// -----

// C5
// expected-error @below {{'attn.compress' op expected layout bshd, sbhd, bhsd or thd, got: thd padded}}
attn.compress @p mean length(32) stride(16) layout(thd padded) heads(4) dims(128) dtype(bf16)

// -----

// C5
// expected-error @below {{'attn.compress' op expected layout bshd, sbhd, bhsd or thd, got: thd pieces}}
attn.compress @p mean length(32) stride(16) layout(thd pieces) heads(4) dims(128) dtype(bf16)

// -----

// C6
// expected-error @below {{'attn.compress' op expected an identifier as its name, got: "a-b"}}
attn.compress @"a-b" mean length(32) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// Text: a clause that is not there,
// expected-error @below {{expected a clause `stride(...)`, got: none; clauses are}}
attn.compress @p mean length(32) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// one twice,
// expected-error @below {{expected each clause once, got: `stride` again}}
attn.compress @p mean length(32) stride(16) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// and one of another op.
// expected-error @below {{expected a clause, got: `branches`}}
attn.compress @p mean length(32) stride(16) branches(2) layout(thd) heads(4) dims(128) dtype(bf16)

// -----

// attn.compress_backward. C1: what it names exists,
// expected-error @below {{'attn.compress_backward' op expected the name of an `attn.compress` in its module, got: @p}}
attn.compress_backward @b of(@p)

// -----

// C1: and is an attn.compress.
attn.combine @g sigmoid branches(3) layout(thd) heads(64) dim(128) dtype(bf16)
// expected-error @below {{'attn.compress_backward' op expected the name of an `attn.compress` in its module, got: @g}}
attn.compress_backward @b of(@g)

// -----

// C1: so it does not name itself.
// expected-error @below {{'attn.compress_backward' op expected the name of an `attn.compress` in its module, got: @b}}
attn.compress_backward @b of(@b)

// -----

// C1: of keys and values.
attn.compress @c mean k_only length(32) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{'attn.compress_backward' op expected an `attn.compress` of keys and values, got: @c with `k_only`}}
attn.compress_backward @b of(@c)

// -----

// C2
attn.compress @p mean length(32) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{'attn.compress_backward' op expected 0 to 8 gradients to add, got: 9}}
attn.compress_backward @b of(@p) add(9)

// -----

// C2
attn.compress @p mean length(32) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{'attn.compress_backward' op expected 0 to 8 gradients to add, got: -1}}
attn.compress_backward @b of(@p) add(-1)

// -----

// C3
attn.compress @p mean length(32) stride(16) layout(thd) heads(4) dims(128) dtype(bf16)
// expected-error @below {{'attn.compress_backward' op expected an identifier as its name, got: "1b"}}
attn.compress_backward @"1b" of(@p)

// -----

// attn.select. C1: an importance.
// expected-error @below {{'attn.select' op expected `prob`, `mean_key` or `max`, the importance of blocks, got: none}}
attn.select @s length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C1: one,
// expected-error @below {{expected one of `prob` and `max`, got: both}}
attn.select @s prob max length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C1: with its windows,
// expected-error @below {{'attn.select' op expected `length` and `stride` beside `prob`, got: `length`}}
attn.select @s prob length(32) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C1: with its windows,
// expected-error @below {{'attn.select' op expected `length` and `stride` beside `prob`, got: `stride`}}
attn.select @s prob stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C1: with its windows,
// expected-error @below {{'attn.select' op expected `length` and `stride` beside `prob`, got: none}}
attn.select @s prob block(64) count(16) first(1) local(2) rows(64) layout(thd) heads(64, 4) dim(128) dtype(bf16)

// -----

// C1: which others do not have,
// expected-error @below {{'attn.select' op expected `length` beside `prob` only, got: `mean_key`}}
attn.select @s mean_key length(64) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C1: which others do not have,
// expected-error @below {{'attn.select' op expected `stride` beside `prob` only, got: `max`}}
attn.select @s max stride(1) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C1: nor a scale.
// expected-error @below {{'attn.select' op expected `scale` beside `prob` only, got: `max`}}
attn.select @s max block(64) count(16) first(1) local(2) rows(64) layout(thd) heads(64, 4) dim(128) dtype(bf16)
  scale(-1.0)

// -----

// C2: windows
// expected-error @below {{'attn.select' op expected a length from 1 to 65536 that a positive stride divides, got: length(16) stride(32)}}
attn.select @s prob length(16) stride(32) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C2: windows
// expected-error @below {{'attn.select' op expected a length from 1 to 65536 that a positive stride divides, got: length(32) stride(0)}}
attn.select @s prob length(32) stride(0) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C2: windows
// expected-error @below {{'attn.select' op expected a length from 1 to 65536 that a positive stride divides, got: length(65552) stride(16)}}
attn.select @s prob length(65552) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C2: and blocks.
// expected-error @below {{'attn.select' op expected blocks of 1 to 65536 keys that the stride divides, got: block(0) stride(16)}}
attn.select @s prob length(32) stride(16) block(0) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C2: and blocks.
// expected-error @below {{'attn.select' op expected blocks of 1 to 65536 keys that the stride divides, got: block(24) stride(16)}}
attn.select @s prob length(32) stride(16) block(24) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C2: and blocks.
// expected-error @below {{'attn.select' op expected blocks of 1 to 65536 keys that the stride divides, got: block(65552) stride(16)}}
attn.select @s prob length(32) stride(16) block(65552) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C2: and blocks.
// expected-error @below {{'attn.select' op expected blocks of 1 to 65536 keys, got: block(65537)}}
attn.select @s mean_key block(65537) count(16) first(1) local(2) rows(1) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.select' op expected first(0) or more, local(1) or more, and count up to 1024 with room for both, got: count(16) first(-1) local(2)}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(-1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.select' op expected first(0) or more, local(1) or more, and count up to 1024 with room for both, got: count(16) first(1) local(0)}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(0) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.select' op expected first(0) or more, local(1) or more, and count up to 1024 with room for both, got: count(16) first(15) local(2)}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(15) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.select' op expected first(0) or more, local(1) or more, and count up to 1024 with room for both, got: count(1025) first(1) local(2)}}
attn.select @s prob length(32) stride(16) block(64) count(1025) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.select' op expected first(0) or more, local(1) or more, and count up to 1024 with room for both, got: count(2) first(1) local(2)}}
attn.select @s prob length(32) stride(16) block(64) count(2) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C4
// expected-error @below {{'attn.select' op expected 1 to 65536 rows that divide a block or that it divides, got: rows(0) block(64)}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(0) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C4
// expected-error @below {{'attn.select' op expected 1 to 65536 rows that divide a block or that it divides, got: rows(48) block(64)}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(48) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C4
// expected-error @below {{'attn.select' op expected 1 to 65536 rows that divide a block or that it divides, got: rows(96) block(64)}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(96) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C4
// expected-error @below {{'attn.select' op expected 1 to 65536 rows that divide a block or that it divides, got: rows(65600) block(64)}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(65600) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C5: heads
// expected-error @below {{'attn.select' op expected 1 to 65536 heads that are a multiple of 1 or more kv heads, got: 64 and 0}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 0) dim(128) dtype(bf16)

// -----

// C5: heads
// expected-error @below {{'attn.select' op expected 1 to 65536 heads that are a multiple of 1 or more kv heads, got: 64 and 5}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 5) dim(128) dtype(bf16)

// -----

// C5: heads
// expected-error @below {{'attn.select' op expected 1 to 65536 heads that are a multiple of 1 or more kv heads, got: 0 and 4}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(0, 4) dim(128) dtype(bf16)

// -----

// C5: heads
// expected-error @below {{'attn.select' op expected 1 to 65536 heads that are a multiple of 1 or more kv heads, got: 65537 and 1}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(65537, 1) dim(128) dtype(bf16)

// -----

// C5: and dim.
// expected-error @below {{'attn.select' op expected a head dim that is a multiple of 8 from 8 to 256, got: 0}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(0) dtype(bf16)

// -----

// C5: and dim.
// expected-error @below {{'attn.select' op expected a head dim that is a multiple of 8 from 8 to 256, got: 12}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(12) dtype(bf16)

// -----

// C5: and dim.
// expected-error @below {{'attn.select' op expected a head dim that is a multiple of 8 from 8 to 256, got: 264}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(264) dtype(bf16)

// -----

// C6
// expected-error @below {{'attn.select' op expected dtype bf16, f16 or f32, got: 'i8'}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(i8)

// -----

// C7
// expected-error @below {{'attn.select' op expected layout bshd, sbhd, bhsd or thd, got: thd padded}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd padded)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C8
// expected-error @below {{'attn.select' op expected a scale of a size from 2^-100 to 2^100, got: }}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16) scale(0.0)

// -----

// C8
// expected-error @below {{'attn.select' op expected a scale of a size from 2^-100 to 2^100, got: }}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16) scale(1.0e31)

// -----

// C9
// expected-error @below {{'attn.select' op expected an identifier as its name, got: "a b"}}
attn.select @"a b" prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C3: numbers of any size
// expected-error @below {{'attn.select' op expected first(0) or more, local(1) or more, and count up to 1024 with room for both, got: count(0) first(1) local(2)}}
attn.select @s prob length(32) stride(16) block(64) count(0) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C3: numbers of any size
// expected-error @below {{'attn.select' op expected first(0) or more, local(1) or more, and count up to 1024 with room for both, got: count(-9223372036854775808) first(1) local(2)}}
attn.select @s prob length(32) stride(16) block(64) count(-9223372036854775808) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C3: numbers of any size
// expected-error @below {{'attn.select' op expected first(0) or more, local(1) or more, and count up to 1024 with room for both, got: count(16) first(9223372036854775807) local(1)}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(9223372036854775807) local(1) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C3: numbers of any size
// expected-error @below {{'attn.select' op expected first(0) or more, local(1) or more, and count up to 1024 with room for both, got: count(16) first(1) local(9223372036854775807)}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(9223372036854775807) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C4
// expected-error @below {{'attn.select' op expected 1 to 65536 rows that divide a block or that it divides, got: rows(-64) block(64)}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(-64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16)

// -----

// C5: heads
// expected-error @below {{'attn.select' op expected 1 to 65536 heads that are a multiple of 1 or more kv heads, got: 64 and -4}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, -4) dim(128) dtype(bf16)

// -----

// C5: heads
// expected-error @below {{'attn.select' op expected 1 to 65536 heads that are a multiple of 1 or more kv heads, got: -64 and 4}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(-64, 4) dim(128) dtype(bf16)

// -----

// C5: and dim. It is what is said, even where the scale that follows from it is none.
// expected-error @below {{'attn.select' op expected a head dim that is a multiple of 8 from 8 to 256, got: -8}}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(-8) dtype(bf16)

// -----

// C8
// expected-error @below {{'attn.select' op expected a scale of a size from 2^-100 to 2^100, got: }}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16) scale(0x7FF8000000000000)

// -----

// C8
// expected-error @below {{'attn.select' op expected a scale of a size from 2^-100 to 2^100, got: }}
attn.select @s prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(64) layout(thd)
  heads(64, 4) dim(128) dtype(bf16) scale(0x7FF0000000000000)

// -----

// attn.combine. C1: one of two,
// expected-error @below {{'attn.combine' op expected one of `sigmoid` and `uniform`, got: none}}
attn.combine @g branches(3) layout(thd) heads(64) dim(128) dtype(bf16)

// -----

// C1
// expected-error @below {{'attn.combine' op expected one of `sigmoid` and `uniform`, got: both}}
attn.combine @g sigmoid uniform branches(3) layout(thd) heads(64) dim(128) dtype(bf16)

// -----

// C1: and gates with sigmoid alone.
// expected-error @below {{'attn.combine' op expected `gates` beside `sigmoid` only, got: `uniform`}}
attn.combine @g uniform branches(3) layout(thd) heads(64) dim(128) dtype(bf16) gates(f32)

// -----

// C2
// expected-error @below {{'attn.combine' op expected 1 to 8 branches, got: 0}}
attn.combine @g sigmoid branches(0) layout(thd) heads(64) dim(128) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.combine' op expected 1 to 8 branches, got: 9}}
attn.combine @g sigmoid branches(9) layout(thd) heads(64) dim(128) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.combine' op expected 1 to 8 branches, got: -1}}
attn.combine @g sigmoid branches(-1) layout(thd) heads(64) dim(128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.combine' op expected 1 to 65536 heads, got: 0}}
attn.combine @g sigmoid branches(3) layout(thd) heads(0) dim(128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.combine' op expected 1 to 65536 heads, got: 65537}}
attn.combine @g sigmoid branches(3) layout(thd) heads(65537) dim(128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.combine' op expected a head dim that is a multiple of 8 from 8 to 512, got: 0}}
attn.combine @g sigmoid branches(3) layout(thd) heads(64) dim(0) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.combine' op expected a head dim that is a multiple of 8 from 8 to 512, got: 12}}
attn.combine @g sigmoid branches(3) layout(thd) heads(64) dim(12) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.combine' op expected a head dim that is a multiple of 8 from 8 to 512, got: 520}}
attn.combine @g sigmoid branches(3) layout(thd) heads(64) dim(520) dtype(bf16)

// -----

// C4
// expected-error @below {{'attn.combine' op expected dtype bf16, f16 or f32, got: 'i32'}}
attn.combine @g sigmoid branches(3) layout(thd) heads(64) dim(128) dtype(i32)

// -----

// C4: gates
// expected-error @below {{'attn.combine' op expected gates of 'bf16' or f32, got: 'f16'}}
attn.combine @g sigmoid branches(3) layout(thd) heads(64) dim(128) dtype(bf16) gates(f16)

// -----

// C5
// expected-error @below {{'attn.combine' op expected layout bshd, sbhd, bhsd or thd, got: thd padded}}
attn.combine @g sigmoid branches(3) layout(thd padded) heads(64) dim(128) dtype(bf16)

// -----

// C6
// expected-error @below {{'attn.combine' op expected an identifier as its name, got: "g.h"}}
attn.combine @"g.h" sigmoid branches(3) layout(thd) heads(64) dim(128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.combine' op expected 1 to 65536 heads, got: -1}}
attn.combine @g sigmoid branches(3) layout(thd) heads(-1) dim(128) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.combine' op expected a head dim that is a multiple of 8 from 8 to 512, got: -8}}
attn.combine @g sigmoid branches(3) layout(thd) heads(64) dim(-8) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.combine' op expected 1 to 8 branches, got: 9223372036854775807}}
attn.combine @g sigmoid branches(9223372036854775807) layout(thd) heads(64) dim(128) dtype(bf16)

// -----

// attn.combine_backward. C1: what it names exists,
// expected-error @below {{'attn.combine_backward' op expected the name of an `attn.combine` in its module, got: @g}}
attn.combine_backward @b of(@g)

// -----

// C1: and is an attn.combine.
attn.add @a parts(3) layout(thd) heads(64) dim(128) dtype(bf16)
// expected-error @below {{'attn.combine_backward' op expected the name of an `attn.combine` in its module, got: @a}}
attn.combine_backward @b of(@a)

// -----

// C1: so it does not name itself.
// expected-error @below {{'attn.combine_backward' op expected the name of an `attn.combine` in its module, got: @b}}
attn.combine_backward @b of(@b)

// -----

// C2
attn.combine @g sigmoid branches(3) layout(thd) heads(64) dim(128) dtype(bf16)
// expected-error @below {{'attn.combine_backward' op expected an identifier as its name, got: "b-"}}
attn.combine_backward @"b-" of(@g)

// -----

// attn.add. C1
// expected-error @below {{'attn.add' op expected 1 to 8 parts, got: 0}}
attn.add @a parts(0) layout(thd) heads(64) dim(128) dtype(bf16)

// -----

// C1
// expected-error @below {{'attn.add' op expected 1 to 8 parts, got: 9}}
attn.add @a parts(9) layout(thd) heads(64) dim(128) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.add' op expected 1 to 65536 heads, got: 0}}
attn.add @a parts(3) layout(thd) heads(0) dim(128) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.add' op expected 1 to 65536 heads, got: 65537}}
attn.add @a parts(3) layout(thd) heads(65537) dim(128) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.add' op expected a head dim that is a multiple of 8 from 8 to 512, got: 0}}
attn.add @a parts(3) layout(thd) heads(64) dim(0) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.add' op expected a head dim that is a multiple of 8 from 8 to 512, got: 12}}
attn.add @a parts(3) layout(thd) heads(64) dim(12) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.add' op expected a head dim that is a multiple of 8 from 8 to 512, got: 520}}
attn.add @a parts(3) layout(thd) heads(64) dim(520) dtype(bf16)

// -----

// C1
// expected-error @below {{'attn.add' op expected 1 to 8 parts, got: -1}}
attn.add @a parts(-1) layout(thd) heads(64) dim(128) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.add' op expected 1 to 65536 heads, got: -1}}
attn.add @a parts(3) layout(thd) heads(-1) dim(128) dtype(bf16)

// -----

// C2
// expected-error @below {{'attn.add' op expected a head dim that is a multiple of 8 from 8 to 512, got: -8}}
attn.add @a parts(3) layout(thd) heads(64) dim(-8) dtype(bf16)

// -----

// C3
// expected-error @below {{'attn.add' op expected dtype bf16, f16 or f32, got: 'f64'}}
attn.add @a parts(3) layout(thd) heads(64) dim(128) dtype(f64)

// -----

// C3: parts
// expected-error @below {{'attn.add' op expected parts of 'bf16' or f32, got: 'f16'}}
attn.add @a parts(3) layout(thd) heads(64) dim(128) dtype(bf16) from(f16)

// -----

// C4
// expected-error @below {{'attn.add' op expected layout bshd, sbhd, bhsd or thd, got: thd pieces}}
attn.add @a parts(3) layout(thd pieces) heads(64) dim(128) dtype(bf16)

// -----

// C5
// expected-error @below {{'attn.add' op expected an identifier as its name, got: }}
attn.add @"\C3\A4" parts(3) layout(thd) heads(64) dim(128) dtype(bf16)

// -----

// Text: a number that 64 bits do not have.
// expected-error @below {{integer constant out of range for attribute}}
attn.add @a parts(3) layout(thd) heads(64) dim(99999999999999999999) dtype(bf16)
