# SPDX-License-Identifier: Apache-2.0
# Target "tidy": clang-tidy over gable's own sources by the rules of .clang-tidy. Not part of any
# other target, since it costs several times a compilation. GABLE_TIDY_FILES narrows it. Needs
# clang-tidy 16 (std::source_location); clang cannot read every OpenMP pragma that g++ can.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
find_program(GABLE_RUN_CLANG_TIDY NAMES run-clang-tidy-19 run-clang-tidy-16 run-clang-tidy)
mark_as_advanced(GABLE_RUN_CLANG_TIDY)
set(GABLE_TIDY_FILES "(src|tests|bench|examples)/" CACHE STRING
    "Regular expression of the files that the target tidy looks at")
if(GABLE_RUN_CLANG_TIDY)
  add_custom_target(tidy
    COMMAND "${GABLE_RUN_CLANG_TIDY}" -quiet -p "${PROJECT_BINARY_DIR}"
            -extra-arg=-fno-openmp -extra-arg=-Wno-unknown-pragmas
            "${PROJECT_SOURCE_DIR}/${GABLE_TIDY_FILES}"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" USES_TERMINAL VERBATIM)
endif()
