// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-rt-test <test> [argument]: prints `<test>: ok` and exits 0, or says what
// was expected and exits 1. The tests of the cache take a directory of their
// own, the `*.test` files beside this one give it.
//
#include "TestHelpers.h"

using namespace attn::rt;

int main(int argc, char **argv) {
  std::string test = argc > 1 ? argv[1] : "", argument = argc > 2 ? argv[2] : "";
  int done = cacheTest(test, argument);
  if (done < 0)
    done = compilerTest(test, argument);
  if (done < 0)
    done = readOnlyTest(test, argument);
  if (done < 0)
    done = trustTest(test, argument);
  if (done < 0)
    done = launchTest(test);
  if (done < 0)
    done = packTest(test);
  if (done < 0)
    done = programTest(test);
  if (done < 0)
    done = stepTest(test, argument);
  if (done < 0) {
    fmt::print(stderr, "attn-rt-test: no test `{}`\n", test);
    return 2;
  }
  fmt::print("{}: ok\n", test);
  return done;
}
