/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "consume.h"

int main(void) { return consume("find_package"); }
