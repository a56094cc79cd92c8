# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# attn_library(NAME sources... DEPENDS targets... LINK libraries...): one room of lib/.
# All rooms share one precompiled header: MLIR's and the dialects' take most of a compile. A file includes what it
# names all the same.
function(attn_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  attn_use_precompiled(${name})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

function(attn_use_precompiled name)
  target_precompile_headers(${name} REUSE_FROM attn_precompiled)
endfunction()

file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cpp "")
add_library(attn_precompiled OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
target_precompile_headers(attn_precompiled PRIVATE
  <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/IR/BuiltinTypes.h>
  <mlir/IR/OpImplementation.h> <mlir/IR/DialectImplementation.h>
  <mlir/IR/PatternMatch.h> <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/SCF/IR/SCF.h>
  <mlir/Pass/Pass.h> <llvm/ADT/TypeSwitch.h> <llvm/Support/raw_ostream.h>
  ${PROJECT_SOURCE_DIR}/include/attn/Dialect/Attn/IR/Attn.h ${PROJECT_SOURCE_DIR}/include/attn/Dialect/Tile/IR/Tile.h)
add_dependencies(attn_precompiled AttnIncGen TileIncGen)
