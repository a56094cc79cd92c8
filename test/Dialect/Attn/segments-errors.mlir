// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What segments refuse: their constraints, by number, and bad text.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// C1: a mask that can be said of positions.
// expected-error @below {{'attn.segments' op expected mask #attn.full, #attn.causal, #attn.causal<bottom_right> or a band of one of them with bounds from 0 to 2^29 - 1 (bottom_right: with right = 0), got: #attn.prefix<4>}}
attn.segments @s mask(#attn.prefix<4>) segments(4)

// -----

// C1
// expected-error @below {{got: #attn.and<#attn.causal, #attn.document>}}
attn.segments @s mask(#attn.and<#attn.causal, #attn.document>) segments(4)

// -----

// C1: windows are not negative,
// expected-error @below {{got: #attn.band<left = -1, right = 3>}}
attn.segments @s mask(#attn.band<left = -1, right = 3>) segments(4)

// -----

// C1
// expected-error @below {{got: #attn.band<left = 3, right = -1>}}
attn.segments @s mask(#attn.band<left = 3, right = -1>) segments(4)

// -----

// C1: and below 2^29.
// expected-error @below {{got: #attn.band<left = 536870912, right = 0>}}
attn.segments @s mask(#attn.band<left = 536870912, right = 0>) segments(4)

// -----

// C1
// expected-error @below {{got: #attn.band<right = 536870912>}}
attn.segments @s mask(#attn.band<right = 536870912>) segments(4)

// -----

// C1: bottom_right is causal.
// expected-error @below {{got: #attn.band<left = 3, right = 1, bottom_right>}}
attn.segments @s mask(#attn.band<left = 3, right = 1, bottom_right>) segments(4)

// -----

// C1
// expected-error @below {{got: #attn.band<left = 3, bottom_right>}}
attn.segments @s mask(#attn.band<left = 3, bottom_right>) segments(4)

// -----

// C2: segments is from 1 to 2048.
// expected-error @below {{'attn.segments' op expected segments from 1 to 2048, got: 0}}
attn.segments @s mask(#attn.full) segments(0)

// -----

// C2
// expected-error @below {{got: 2049}}
attn.segments @s mask(#attn.full) segments(2049)

// -----

// C2
// expected-error @below {{got: -4}}
attn.segments @s mask(#attn.full) segments(-4)

// -----

// C3: tiles is a multiple of 16 from 16 to 256.
// expected-error @below {{'attn.segments' op expected tiles in multiples of 16 from 16 to 256, got: 0}}
attn.segments @s mask(#attn.full) segments(4) tiles(0)

// -----

// C3
// expected-error @below {{got: 24}}
attn.segments @s mask(#attn.full) segments(4) tiles(24)

// -----

// C3
// expected-error @below {{got: 272}}
attn.segments @s mask(#attn.full) segments(4) tiles(272)

// -----

// C3
// expected-error @below {{got: -16}}
attn.segments @s mask(#attn.full) segments(4) tiles(-16)

// -----

// C4: the name is an identifier.
// expected-error @below {{'attn.segments' op expected an identifier as its name, got: "two words"}}
attn.segments @"two words" mask(#attn.full) segments(4)

// -----

// Two of a name.
// expected-note @below {{see existing symbol definition here}}
attn.segments @s mask(#attn.full) segments(4)
// expected-error @below {{redefinition of symbol named 's'}}
attn.segments @s mask(#attn.causal) segments(4)

// -----

// expected-error @below {{expected a clause `segments(...)`, got: none; clauses are mask(...) segments(...) [maps] [tiles(...)]}}
attn.segments @s mask(#attn.full) maps
