# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# install.sh <source> <build> <inputs>: installs the build, moves what was installed, and uses it.
set -eu
source=$(realpath "$1") build=$(realpath "$2") inputs=$(realpath "$3")
work=$(mktemp -d) # outside the tree
trap 'rm -rf "$work"' EXIT
fail() { # what was expected, what there is
  echo "install.sh: error: expected $1, got: $2"
  exit 1
}
expectNone() { [ -z "$2" ] || fail "$1" "$2"; }

# One component, into a staging directory.
DESTDIR=$work/stage cmake --install "$build" --prefix /opt/attnc --component runtime
names=$(cd "$work/stage/opt/attnc" && find . ! -type d | sed 's|.*/||' | LC_ALL=C sort)
expectNone 'libraries alone in the component `runtime`' "$(echo "$names" | grep -v '^libattn[a-z]*[.]so[.]' || true)"
echo components: $(echo "$names" | grep '^libattnc[.]')
rm -rf "$work/stage"

# All of them; then the prefix moves.
cmake --install "$build" --prefix "$work/first" --strip
mv "$work/first" "$work/moved"
prefix=$work/moved
expectNone 'no file that names the source, the build or the first prefix' \
  "$(grep -rlF -e "$source" -e "$build" -e "$work/first" "$prefix" || true)"
expectNone 'nothing of LLVM, MLIR or CMake, and no archives' \
  "$(find "$prefix" -name '*.a' -o -name '*.td' -o -iname '*mlir*.h' -o -iname '*llvm*' -o -name 'nvrtc-venv*' -o -name CMakeCache.txt)"
for file in "$prefix"/bin/* "$prefix"/lib*/libattn*.so; do
  expectNone "no run path in $file" "$(readelf -d "$file" | grep -E 'RPATH|RUNPATH' || true)"
  expectNone "no symbol table in $file" "$(readelf -S "$file" | grep -F .symtab || true)"
done

# The headers, each by itself.
find "$prefix/include" -name '*.h' | while read -r header; do
  cc -std=c99 -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$prefix/include" -x c "$header"
  c++ -std=c++11 -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$prefix/include" -x c++ "$header"
done

# A program in C, by find_package.
cp -r "$inputs/cmake" "$inputs/consume.h" "$inputs/consumer.c" "$inputs/consumer.cpp" "$work"
cmake -G Ninja -S "$work/cmake" -B "$work/cmake/build" -DCMAKE_PREFIX_PATH="$prefix"
cmake --build "$work/cmake/build"
"$work/cmake/build/consumer"

# One in C++, by pkg-config.
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name attnc.pc)")
export PKG_CONFIG_PATH
c++ -std=c++11 -Wall -Wextra -pedantic -Werror -DVERSION="\"$(pkg-config --modversion attnc)\"" "$work/consumer.cpp" \
  -o "$work/consumer" $(pkg-config --cflags --libs attnc) -Wl,-rpath,"$(pkg-config --variable=libdir attnc)"
"$work/consumer"

# The tools, on an example of the documentation.
"$prefix/bin/attn-run" "$(find "$prefix/share" -name packed_causal.mlir)" --target=cpu --check
"$prefix/bin/attn-cache" list
"$prefix/bin/attn-translate" "$(find "$prefix/share" -name packed_causal.mlir)" --target=cpu > "$work/kernel.cpp"
echo tools: right
echo all right
