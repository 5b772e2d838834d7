# Targets for the libtorch inside PyTorch's wheel, which scripts/setup.sh unpacks: torch::cpu, and layline_torch with the
# flags that trainer code is compiled with. The wheel's own CMake package wants every CUDA library, so it is not used.
set(LAYLINE_TORCH_DIR "" CACHE PATH "Folder that holds the unpacked torch wheel; empty: where scripts/setup.sh puts it")
if(LAYLINE_TORCH_DIR)
  set(_site "${LAYLINE_TORCH_DIR}")
else()
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/setup.sh --print-torch-folder
                  OUTPUT_VARIABLE _site OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
set(_torch "${_site}/torch")
if(NOT EXISTS "${_torch}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "no libtorch in ${_site}: run scripts/setup.sh torch, set LAYLINE_TORCH_DIR to a folder with the "
                      "unpacked wheel, or build the planner alone with -DLAYLINE_TRAINER=OFF (make planner)")
endif()

add_library(torch::c10 SHARED IMPORTED)
set_target_properties(torch::c10 PROPERTIES IMPORTED_LOCATION "${_torch}/lib/libc10.so")
target_include_directories(torch::c10 SYSTEM INTERFACE "${_torch}/include" "${_torch}/include/torch/csrc/api/include")
# The wheel's headers hold an fmt newer than the system's library, and are found first.
target_compile_definitions(torch::c10 INTERFACE USE_DISTRIBUTED USE_C10D_GLOO _GLIBCXX_USE_CXX11_ABI=1 FMT_HEADER_ONLY=1)
add_library(torch::cpu SHARED IMPORTED)
set_target_properties(torch::cpu PROPERTIES IMPORTED_LOCATION "${_torch}/lib/libtorch_cpu.so")
target_link_libraries(torch::cpu INTERFACE torch::c10)
# The wheel finds its CUDA runtime by its own run path; nothing here calls it.
target_link_options(torch::cpu INTERFACE LINKER:--no-as-needed LINKER:--allow-shlib-undefined
                                         "LINKER:-rpath,${_torch}/lib")

# Headers that every trainer file includes, compiled once.
add_library(layline_torch STATIC ${PROJECT_SOURCE_DIR}/cmake/torch_headers.cc)
target_link_libraries(layline_torch PUBLIC torch::cpu Threads::Threads)
target_compile_options(layline_torch PRIVATE -Wpedantic)  # as its users: else the header does not fit them
target_precompile_headers(layline_torch PRIVATE <ATen/ATen.h> <torch/csrc/autograd/custom_function.h>)

# layline_trainer_library(NAME [USES folder...] [PUBLIC target...] [PRIVATE library...])
# As layline_library, for folders of layline/trainer/: their libraries are layline_trainer_NAME, and USES names such
# folders as trainer_NAME.
function(layline_trainer_library name)
  cmake_parse_arguments(ARG "" "" "USES;PUBLIC;PRIVATE" ${ARGN})
  layline_library(trainer_${name} USES ${ARG_USES} PUBLIC layline_torch ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  get_target_property(type layline_trainer_${name} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    target_precompile_headers(layline_trainer_${name} REUSE_FROM layline_torch)
  endif()
endfunction()

# layline_trainer_test(NAME USES folder... [PRIVATE library...])
# The tests of layline/trainer/NAME, as trainer_NAME.
function(layline_trainer_test name)
  cmake_parse_arguments(ARG "" "" "USES;PRIVATE" ${ARGN})
  layline_test(trainer_${name} USES ${ARG_USES} PRIVATE ${ARG_PRIVATE})
  if(TARGET trainer_${name}_test)
    target_link_libraries(trainer_${name}_test PRIVATE layline_torch)
    target_precompile_headers(trainer_${name}_test REUSE_FROM layline_torch)
  endif()
endfunction()
