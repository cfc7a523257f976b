# Flags of gable's own code, on a target that is linked privately and never exported.
add_library(gable_build_flags INTERFACE)
target_compile_options(gable_build_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow
  $<$<BOOL:${GABLE_WERROR}>:-Werror>
  # Messages and libraries must not hold the build machine's folders.
  "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")
if(GABLE_SANITIZE)
  list(JOIN GABLE_SANITIZE "," sanitizers)
  target_compile_options(gable_build_flags INTERFACE
    -fsanitize=${sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(gable_build_flags INTERFACE -fsanitize=${sanitizers})
endif()

# gable_find(<option> <package> <what> <out>): AUTO uses the package where found, ON demands it.
function(gable_find option package what out)
  set(${out} FALSE PARENT_SCOPE)
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

if(GABLE_CUDA STREQUAL "ON")
  message(FATAL_ERROR "gable: GABLE_CUDA=ON, but this version has no CUDA backend; use AUTO or OFF")
elseif(GABLE_CUDA STREQUAL "AUTO")
  message(STATUS "gable: CUDA backend left out (not part of this version)")
endif()
