// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "lane.h"
