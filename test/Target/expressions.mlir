// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalars as C++: precedence, names, and where a value gets a line of its own.
//
// RUN: attn-translate %s | FileCheck %s

// CHECK: ATTN_KERNEL(scalars, /*threads=*/128, /*CTAs per multiprocessor=*/1)
// CHECK-NEXT: (const int *array, const attn::fp16 *half, const float *wide, int a, int b, int c, long long n) {
tile.kernel @scalars(%array: !tile.ptr<i32>, %half: !tile.ptr<f16>, %wide: !tile.ptr<f32>, %a: i32, %b: i32, %c: i32, %n: i64)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %minus = arith.constant -7 : i32
  // Operators associate to the left: brackets on the right only.
  // CHECK-NEXT: const int x = array[a - b - c];
  %0 = arith.subi %a, %b : i32
  %1 = arith.subi %0, %c : i32
  %x0 = tile.load %array[%1] : i32 from !tile.ptr<i32>
  // CHECK-NEXT: const int x_2 = array[a - (b - c)];
  %2 = arith.subi %b, %c : i32
  %3 = arith.subi %a, %2 : i32
  %x1 = tile.load %array[%3] : i32 from !tile.ptr<i32>
  // CHECK-NEXT: const int x_3 = array[(a + b) * c % 7 / (b * c)];
  %4 = arith.addi %a, %b : i32
  %5 = arith.muli %4, %c : i32
  %seven = arith.constant 7 : i32
  %6 = arith.remui %5, %seven : i32
  %7 = arith.muli %b, %c : i32
  %8 = arith.divui %6, %7 : i32
  %x2 = tile.load %array[%8] : i32 from !tile.ptr<i32>
  // A name of the location is the value's; taken ones get a number.
  // CHECK-NEXT: const int middle = attn::max(attn::min(a, b), -7);
  %9 = arith.minsi %a, %b : i32
  %10 = arith.maxsi %9, %minus : i32 loc("middle")
  // CHECK-NEXT: const int middle_2 = a < b | a == b & !(b <= c) ? middle : a;
  %lt = arith.cmpi slt, %a, %b : i32
  %eq = arith.cmpi eq, %a, %b : i32
  %le = arith.cmpi sle, %b, %c : i32
  %true = arith.constant true
  %not = arith.xori %le, %true : i1
  %and = arith.andi %eq, %not : i1
  %or = arith.ori %lt, %and : i1
  %11 = arith.select %or, %10, %a : i32 loc("middle")
  // Of a condition 1 or 0, or -1 or 0; and whether one of two holds.
  // CHECK-NEXT: const int bit = (int)(a < b) + c;
  %c0 = arith.cmpi slt, %a, %b : i32
  %bit0 = arith.extui %c0 : i1 to i32
  %bit = arith.addi %bit0, %c : i32 loc("bit")
  // CHECK-NEXT: const int mask = -(int)(a < b) - c;
  %c1 = arith.cmpi slt, %a, %b : i32
  %mask0 = arith.extsi %c1 : i1 to i32
  %mask = arith.subi %mask0, %c : i32 loc("mask")
  // CHECK-NEXT: const int either = a < b != (a == b) ? bit : mask;
  %c2 = arith.cmpi slt, %a, %b : i32
  %c3 = arith.cmpi eq, %a, %b : i32
  %xor = arith.xori %c2, %c3 : i1
  %either = arith.select %xor, %bit, %mask : i32 loc("either")
  // CHECK-NEXT: if (a > b & b >= c & a != c) {
  %gt = arith.cmpi sgt, %a, %b : i32
  %ge = arith.cmpi sge, %b, %c : i32
  %ne = arith.cmpi ne, %a, %c : i32
  %12 = arith.andi %gt, %ge : i1
  %13 = arith.andi %12, %ne : i1
  scf.if %13 {
    // A cast is spelled where it is used.
    // CHECK-NEXT: auto *const rows = half + (long long)(x + x_2) * n;
    %14 = arith.addi %x0, %x1 : i32
    %15 = arith.extsi %14 : i32 to i64
    %16 = arith.muli %15, %n : i64
    %17 = tile.advance %half, %16 : !tile.ptr<f16> loc("rows")
    // CHECK-NEXT: } else {
  } else {
    // The names of the other branch are free again.
    // CHECK-NEXT: auto *const rows = half + n;
    %18 = tile.advance %half, %n : !tile.ptr<f16> loc("rows")
    // CHECK-NEXT: for (int j = 0; j < c; ++j) {
    scf.for %j = %zero to %c step %one : i32 {
      // CHECK-NEXT: for (int j_2 = j; j_2 < a + b; j_2 += 7) {
      %bound = arith.addi %a, %b : i32
      scf.for %i = %j to %bound step %seven : i32 {
        // CHECK-NEXT: const int x_4 = array[j_2];
        %x3 = tile.load %array[%i] : i32 from !tile.ptr<i32>
        %x4 = arith.addi %x3, %x3 : i32 loc("odd name-1")
        // CHECK-NEXT: const int odd_name_1 = x_4 + x_4;
      }
    }
  }
}

// What lanes exchange has a line of its own where it would be a conditional's arm, under a cast too, and is never spelled twice.
// CHECK: ATTN_KERNEL(exchanges,
// CHECK-NEXT: (const int *array, int a, long long n) {
// CHECK-NEXT: const int x = attn::uniform(array[a]);
// CHECK-NEXT: const int x_2 = array[array[a < attn::uniform(array[a + 1]) ? x : a] + array[(a < a ? (long long)x : n) + ((long long)x + n)]];
tile.kernel @exchanges(%array: !tile.ptr<i32>, %a: i32, %n: i64) target("sm_80") grid(dense heads 1)
    schedule(#tile.tiled<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1>) {
  %one = arith.constant 1 : i32
  %x = tile.load uniform %array[%a] : i32 from !tile.ptr<i32>
  %next = arith.addi %a, %one : i32
  %m = tile.load uniform %array[%next] : i32 from !tile.ptr<i32>
  %e = arith.extsi %x : i32 to i64
  %c = arith.cmpi slt, %a, %a : i32
  %s = arith.select %c, %e, %n : i64
  %t = arith.addi %e, %n : i64
  %u = arith.addi %s, %t : i64
  %v = tile.load %array[%u] : i64 from !tile.ptr<i32>
  %d = arith.cmpi slt, %a, %m : i32
  %o = arith.select %d, %x, %a : i32
  %w = tile.load %array[%o] : i32 from !tile.ptr<i32>
  %z = arith.addi %w, %v : i32
  %y = tile.load %array[%z] {tile.name = "y"} : i32 from !tile.ptr<i32>
}
