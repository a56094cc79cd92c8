// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "consume.h"

int main() { return consume("pkg-config"); }
