# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# attn_library(NAME sources... [SMALL] DEPENDS targets... LINK libraries...): one directory of lib/. SMALL: compiled for size,
# where time does not matter.
# All of them share one precompiled header: MLIR's and the dialects' take most of a compile. A file includes what it
# names all the same.
function(attn_library name)
  cmake_parse_arguments(ARG "SMALL" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(ARG_SMALL) # a header that is precompiled with -O2 would bring that back
    target_compile_options(${name} PRIVATE -Os)
    target_precompile_headers(${name} REUSE_FROM attn_precompiled_small)
  else()
    attn_use_precompiled(${name})
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

function(attn_use_precompiled name)
  target_precompile_headers(${name} REUSE_FROM attn_precompiled)
endfunction()

file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cpp "")
set(attn_precompiled_headers
  <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/IR/BuiltinTypes.h>
  <mlir/IR/OpImplementation.h> <mlir/IR/DialectImplementation.h>
  <mlir/IR/PatternMatch.h> <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/SCF/IR/SCF.h>
  <mlir/Pass/Pass.h> <llvm/ADT/TypeSwitch.h> <llvm/Support/raw_ostream.h>
  ${PROJECT_SOURCE_DIR}/include/attn/Dialect/Attn/IR/Attn.h ${PROJECT_SOURCE_DIR}/include/attn/Dialect/Tile/IR/Tile.h)
foreach(name attn_precompiled attn_precompiled_small)
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
  target_precompile_headers(${name} PRIVATE ${attn_precompiled_headers})
  add_dependencies(${name} AttnIncGen TileIncGen)
endforeach()
target_compile_options(attn_precompiled_small PRIVATE -Os)
