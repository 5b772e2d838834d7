# Helpers that keep every folder's CMakeLists.txt to the line that matters: what the folder may use.

include(GoogleTest)

# Warnings are errors for the compiler that releases are built with; others know other warnings.
set(LAYLINE_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # -Wrestrict: a false alarm of GCC 12 on std::string's operator+ (GCC bug 105651).
  list(APPEND LAYLINE_WARNINGS -Werror -Wno-restrict)
endif()

# layline_library(NAME [USES folder...] [PRIVATE library...])
# One library from all *.cc files of this folder. USES names folders of layline/, PRIVATE outside libraries
# that no header of the folder shows.
function(layline_library name)
  cmake_parse_arguments(ARG "" "" "USES;PUBLIC;PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(NOT sources)
    add_library(layline_${name} INTERFACE)
    return()
  endif()
  add_library(layline_${name} STATIC ${sources})
  target_include_directories(layline_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(layline_${name} PRIVATE ${LAYLINE_WARNINGS})
  list(TRANSFORM ARG_USES PREPEND layline_)
  target_link_libraries(layline_${name} PUBLIC ${ARG_USES} ${ARG_PUBLIC} PRIVATE fmt::fmt ${ARG_PRIVATE})
endfunction()

# layline_test(NAME USES folder... [PRIVATE library...])
# One GoogleTest program (with RapidCheck for properties) from all *.cc files of this folder, registered test by test.
function(layline_test name)
  cmake_parse_arguments(ARG "" "" "USES;PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name}_test ${sources})
  target_compile_options(${name}_test PRIVATE ${LAYLINE_WARNINGS} -Wno-conversion -Wno-shadow)
  target_compile_definitions(${name}_test PRIVATE LAYLINE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                  LAYLINE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  list(TRANSFORM ARG_USES PREPEND layline_)
  target_link_libraries(${name}_test PRIVATE ${ARG_USES} ${ARG_PRIVATE} fmt::fmt GTest::gtest GTest::gmock
                                             GTest::gtest_main rapidcheck)
  # The examples that properties are tried on are the same in every run; scripts/properties.sh draws others.
  gtest_discover_tests(${name}_test TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT 300 ENVIRONMENT "RC_PARAMS=seed=20231109")
endfunction()
