# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What `cmake --install` installs, in four components:
#   runtime        the libraries
#   development    their headers, the link that -l finds, files for find_package(attnc) and pkg-config
#   tools          programs
#   documentation  README, licence, docs/
# Nothing of LLVM or MLIR is among them: libraries and tools have what they need inside. No installed file names the
# source or the build directory, so the prefix can be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Before 1.0 a minor version may change the interface, so 0.1 and 0.2 are as far apart as 1 and 2.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(ATTN_SOVERSION 0.${PROJECT_VERSION_MINOR})
  set(attn_compatibility SameMinorVersion)
else()
  set(ATTN_SOVERSION ${PROJECT_VERSION_MAJOR})
  set(attn_compatibility SameMajorVersion)
endif()
# What attnVersion() says.
math(EXPR ATTN_VERSION_NUMBER
  "${PROJECT_VERSION_MAJOR} * 10000 + ${PROJECT_VERSION_MINOR} * 100 + ${PROJECT_VERSION_PATCH}")

# attn_install_library(NAME DESCRIPTION text HEADERS include/attn-c/X.h...): a shared library with a C interface. It is
# attnc::NAME for CMake and NAME for pkg-config.
function(attn_install_library name)
  cmake_parse_arguments(ARG "" "DESCRIPTION" "HEADERS" ${ARGN})
  set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${ATTN_SOVERSION}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  target_include_directories(${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  add_library(attnc::${name} ALIAS ${name})
  install(TARGETS ${name} EXPORT attnc-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
  foreach(header ${ARG_HEADERS})
    cmake_path(GET header PARENT_PATH directory)
    string(REGEX REPLACE "^include/?" "" directory "${directory}")
    install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${directory}
      COMPONENT development)
  endforeach()

  # The .pc file finds its prefix from where it lies itself, if the library's directory is below the prefix.
  if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(PC_PREFIX ${CMAKE_INSTALL_PREFIX})
  else()
    file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
    string(REGEX REPLACE "/$" "" PC_PREFIX "\${pcfiledir}/${up}")
  endif()
  foreach(variable LIBDIR INCLUDEDIR)
    set(PC_${variable} ${CMAKE_INSTALL_${variable}})
    if(NOT IS_ABSOLUTE "${PC_${variable}}")
      set(PC_${variable} "\${prefix}/${PC_${variable}}")
    endif()
  endforeach()
  set(PC_NAME ${name})
  set(PC_DESCRIPTION "${ARG_DESCRIPTION}")
  configure_file(${PROJECT_SOURCE_DIR}/cmake/library.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()

# attn_install_tools(NAME...)
function(attn_install_tools)
  install(TARGETS ${ARGN} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
endfunction()

# The files that belong to no target; called once, when all libraries are known.
function(attn_install_package)
  set(directory ${CMAKE_INSTALL_LIBDIR}/cmake/attnc)
  install(EXPORT attnc-targets NAMESPACE attnc:: DESTINATION ${directory} COMPONENT development)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/attnc-config.cmake.in
    ${PROJECT_BINARY_DIR}/attnc-config.cmake INSTALL_DESTINATION ${directory} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/attnc-config-version.cmake COMPATIBILITY ${attn_compatibility})
  install(FILES ${PROJECT_BINARY_DIR}/attnc-config.cmake ${PROJECT_BINARY_DIR}/attnc-config-version.cmake
    DESTINATION ${directory} COMPONENT development)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documentation)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documentation
    PATTERN results EXCLUDE PATTERN __pycache__ EXCLUDE)
  # What README and the pages on installing, packs and programs point to; paths are those of the repository, so links
  # lead there. Links to recorded runs and to other sources do not.
  foreach(file include/attn-c/Attn.h include/attn-c/Runtime.h include/attn-c/Tensor.h
      test/Tools/Inputs/c_api.c test/Tools/Inputs/check.h test/Device/attnc.py test/Runtime/Inputs/attnrt.c
      test/Install/Inputs/consume.h test/Install/Inputs/consumer.c test/Install/Inputs/consumer.cpp
      test/Dialect/Program/ring.mlir test/Dialect/Program/nsa.mlir)
    cmake_path(GET file PARENT_PATH directory)
    install(FILES ${PROJECT_SOURCE_DIR}/${file} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${directory}
      COMPONENT documentation)
  endforeach()
endfunction()
