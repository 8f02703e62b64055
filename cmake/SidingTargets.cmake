# Two helpers, so that every folder's CMakeLists.txt is a list of names and dependencies.
#
#   siding_library(NAME SRCS ... [DEPS ...])   library siding_NAME with the alias siding::NAME
#   siding_test(NAME SRCS ... [DEPS ...] [LABELS ...] [THREADS])   GoogleTest program, run by ctest as NAME
#
# A test without a label has the label `unit`, and is built by the target unit_tests: it needs neither root nor gRPC.
# THREADS: one that can start threads. It has the label `threads` as well, and is built by threaded_tests, which
# `./run check` runs under ThreadSanitizer; tests/rules/threads_test.py finds those that lack it.

set(SIDING_SANITIZE "" CACHE STRING "Sanitizers to build with: thread; or, with clang, address,undefined")

add_library(siding_settings INTERFACE)
target_include_directories(siding_settings INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(siding_settings INTERFACE -Wall -Wextra -Wno-missing-field-initializers -pthread)
# What assertions and tests name is the same in each clone, so that one has from the compiler's cache what another has compiled.
target_compile_options(siding_settings INTERFACE -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # What is used without its lock: see common/mutex.h. g++ has no such analysis.
  target_compile_options(siding_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # With CMAKE_COMPILE_WARNING_AS_ERROR: g++ 12 sees these where there is none, inside of the standard library's strings.
  target_compile_options(siding_settings INTERFACE -Wno-error=array-bounds -Wno-error=restrict -Wno-error=stringop-overflow
                         -Wno-error=stringop-overread -Wno-error=maybe-uninitialized)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A source's own types are in an unnamed namespace of a file that another one includes, for g++.
  target_compile_options(siding_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(SIDING_SANITIZE)
  # Debian's protobuf and abseil were compiled without: where their headers make classes larger under a sanitizer, ours
  # would not fit theirs.
  target_compile_options(siding_settings INTERFACE -fsanitize=${SIDING_SANITIZE} -fno-omit-frame-pointer
                         -U__SANITIZE_THREAD__ -U__SANITIZE_ADDRESS__)
  target_link_options(siding_settings INTERFACE -fsanitize=${SIDING_SANITIZE})
endif()
if(SIDING_SANITIZE MATCHES undefined)
  # The first finding ends the program. `vptr` needs the type information that the plugin for Slurm does without.
  target_compile_options(siding_settings INTERFACE -fsanitize=float-cast-overflow -fno-sanitize=vptr -fno-sanitize-recover=all)
endif()
if(SIDING_SANITIZE MATCHES address)
  target_compile_options(siding_settings INTERFACE -fsanitize=fuzzer-no-link)  # what an input has reached, for the fuzzers
endif()

# Linking took a quarter of a build's time with the usual linker, and no cache helps it. What is installed is linked with that one.
find_program(SIDING_LLD ld.lld)
if(SIDING_LLD AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  add_link_options(-fuse-ld=lld)
endif()

function(siding_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_library(siding_${name} STATIC ${ARG_SRCS})
  target_precompile_headers(siding_${name} REUSE_FROM siding_precompiled)
  add_library(siding::${name} ALIAS siding_${name})
  target_link_libraries(siding_${name} PUBLIC siding_settings ${ARG_DEPS})
endfunction()

# For the targets of the calling folder that are too slow without: the build with AddressSanitizer does not optimise.
macro(siding_optimise_under_sanitizers)
  if(SIDING_SANITIZE MATCHES address)
    add_compile_options(-O1)
    set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)  # they are compiled without, and fit no other -O
  endif()
endmacro()

# Before the command of a test with the label `real`: they run side by side, each on a machine of its own.
set(SIDING_APART /usr/bin/python3 ${CMAKE_SOURCE_DIR}/tests/harness/apart.py)

add_custom_target(unit_tests)
add_custom_target(threaded_tests)

function(siding_test name)
  cmake_parse_arguments(ARG "THREADS" "" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_precompile_headers(${name} REUSE_FROM siding_precompiled_tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  set(command ${name})
  if("real" IN_LIST ARG_LABELS)
    set(command ${SIDING_APART} $<TARGET_FILE:${name}>)
  endif()
  add_test(NAME ${name} COMMAND ${command})
  set_tests_properties(${name} PROPERTIES TIMEOUT 1500)
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
    add_dependencies(unit_tests ${name})
  endif()
  if(ARG_THREADS)
    list(APPEND ARG_LABELS threads)
    add_dependencies(threaded_tests ${name})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
endfunction()
