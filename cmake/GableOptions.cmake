# SPDX-License-Identifier: Apache-2.0
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)  # for clang-tidy and editors
endif()

# Flags of gable's own code, on a target that is linked privately and never exported.
add_library(gable_build_flags INTERFACE)
target_compile_options(gable_build_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow>
  # nvcc's generated host code is neither pedantic nor free of shadowing.
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall>
  # g++ 12 sees overlaps in std::string concatenation that are not there (GCC bug 105329)
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
  $<$<AND:$<BOOL:${GABLE_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>
  $<$<AND:$<BOOL:${GABLE_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>
  # Messages and libraries must not hold the build machine's folders.
  $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>)
cmake_path(IS_PREFIX PROJECT_SOURCE_DIR "${PROJECT_BINARY_DIR}" NORMALIZE build_is_inside)
if(NOT build_is_inside)
  target_compile_options(gable_build_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${PROJECT_BINARY_DIR}/=>)
endif()
if(GABLE_SANITIZE)
  list(JOIN GABLE_SANITIZE "," sanitizers)
  target_compile_options(gable_build_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:
    -fsanitize=${sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
  target_link_options(gable_build_flags INTERFACE -fsanitize=${sanitizers})
endif()

# Stops unless the option is AUTO, ON or OFF, in the many spellings of a CMake boolean.
macro(gable_check_choice option)
  string(TOUPPER "${${option}}" ${option})
  if(${option} MATCHES "^(1|YES|TRUE|Y)$")
    set(${option} ON)
  elseif(${option} MATCHES "^(0|NO|FALSE|N)$")
    set(${option} OFF)
  elseif(NOT ${option} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "gable: ${option} expected AUTO, ON or OFF, got ${${option}}")
  endif()
endmacro()

# gable_find(<option> <package> <what> <out>): AUTO uses the package where found, ON demands it.
function(gable_find option package what out)
  set(${out} FALSE PARENT_SCOPE)
  gable_check_choice(${option})
  if(${option} STREQUAL "OFF")
    message(STATUS "gable: ${what} left out (${option}=OFF)")
    return()
  endif()
  find_package(${package} QUIET)
  if(${package}_FOUND)
    set(${out} TRUE PARENT_SCOPE)
  elseif(${option} STREQUAL "ON")
    message(FATAL_ERROR "gable: ${option}=ON, but ${package} was not found")
  else()
    message(STATUS "gable: ${what} left out (${package} not found)")
  endif()
endfunction()

gable_check_choice(GABLE_CUDA)
set(gable_has_cuda FALSE)
if(GABLE_CUDA STREQUAL "OFF")
  message(STATUS "gable: CUDA backend left out (GABLE_CUDA=OFF)")
else()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    find_package(CUDAToolkit 12.4 QUIET)
  endif()
  if(CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND AND TARGET CUDA::cublasLt AND TARGET CUDA::cufft)
    # Ampere, Ada and Hopper, and PTX for what comes later.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 89-real 90a-real 90-virtual)
    endif()
    enable_language(CUDA)
    set(gable_has_cuda TRUE)
    message(STATUS "gable: CUDA backend for architectures ${CMAKE_CUDA_ARCHITECTURES}")
  elseif(GABLE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "gable: GABLE_CUDA=ON, but no CUDA compiler and toolkit >= 12.4 with "
                        "cuBLASLt and cuFFT were found; set CUDACXX or CMAKE_CUDA_COMPILER to nvcc")
  else()
    message(STATUS "gable: CUDA backend left out (no CUDA compiler and toolkit >= 12.4 found)")
  endif()
endif()
