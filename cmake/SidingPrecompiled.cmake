# Headers that most sources read, compiled once: reading them took about a second of each source. Only headers
# that are not ours, so that an edit never compiles what does not include it. A source includes what it uses all the
# same: clang-tidy reads each by itself and without them (preset `tidy`), and finds what was forgotten.
set(SIDING_PRECOMPILED <algorithm> <atomic> <chrono> <condition_variable> <filesystem> <fstream> <functional> <map> <memory>
    <mutex> <optional> <set> <sstream> <string> <thread> <vector> <absl/status/statusor.h> <absl/strings/str_cat.h>
    <absl/strings/str_format.h> <absl/strings/str_join.h> <absl/strings/str_split.h> <google/protobuf/map_field.h>
    <google/protobuf/message.h> <google/protobuf/repeated_field.h>)

file(TOUCH ${CMAKE_BINARY_DIR}/empty.cc)
add_library(siding_precompiled OBJECT ${CMAKE_BINARY_DIR}/empty.cc)
target_link_libraries(siding_precompiled PRIVATE siding_settings)
target_precompile_headers(siding_precompiled PRIVATE ${SIDING_PRECOMPILED})

add_library(siding_precompiled_tests OBJECT ${CMAKE_BINARY_DIR}/empty.cc)
target_link_libraries(siding_precompiled_tests PRIVATE siding_settings GTest::gmock)
target_precompile_headers(siding_precompiled_tests PRIVATE ${SIDING_PRECOMPILED} <gmock/gmock.h> <gtest/gtest.h>)

# For ccache: see "Precompiled headers" in its manual. `./run build` sets the sloppiness that it asks for as well.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(siding_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
else()
  target_compile_options(siding_settings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
