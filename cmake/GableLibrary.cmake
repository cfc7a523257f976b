# SPDX-License-Identifier: Apache-2.0
# The library targets: gable::core, gable::data, gable::gable.
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
gable_find(GABLE_OPENMP OpenMP "CPU threads" gable_has_openmp)
gable_find(GABLE_HIGHWAY hwy "Highway kernels" gable_has_highway)

file(GLOB gable_headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
     "${PROJECT_SOURCE_DIR}/include/gable/*.hpp" "${PROJECT_SOURCE_DIR}/include/gable/*/*.hpp")
file(GLOB gable_core_sources CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/src/*.cpp" "${PROJECT_SOURCE_DIR}/src/nn/*.cpp"
     "${PROJECT_SOURCE_DIR}/src/models/*.cpp" "${PROJECT_SOURCE_DIR}/src/optim/*.cpp"
     "${PROJECT_SOURCE_DIR}/src/amp/*.cpp")
file(GLOB gable_cpu_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/cpu/*.cpp")

if(gable_has_cuda)
  list(REMOVE_ITEM gable_core_sources "${PROJECT_SOURCE_DIR}/src/no_cuda.cpp")
endif()
add_library(gable_core ${gable_core_sources} ${gable_cpu_sources})
add_library(gable::core ALIAS gable_core)
set_target_properties(gable_core PROPERTIES
  EXPORT_NAME core OUTPUT_NAME gable
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  POSITION_INDEPENDENT_CODE ON
  DEFINE_SYMBOL ""  # objects of the static and the shared library are the same to ccache
  VERIFY_INTERFACE_HEADER_SETS ON)
target_compile_features(gable_core PUBLIC cxx_std_20)
list(REMOVE_ITEM gable_headers include/gable/tensor/eigen.hpp)
target_sources(gable_core PUBLIC
  FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${gable_headers}
  # Bridges need a library that gable's users link themselves.
  FILE_SET bridges TYPE HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include"
    FILES include/gable/tensor/eigen.hpp)
set_target_properties(gable_core PROPERTIES INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)
target_link_libraries(gable_core PRIVATE
  $<BUILD_INTERFACE:gable_build_flags> $<BUILD_INTERFACE:Eigen3::Eigen>)
if(gable_has_openmp)
  target_link_libraries(gable_core PRIVATE OpenMP::OpenMP_CXX)
endif()
if(gable_has_highway)
  target_link_libraries(gable_core PRIVATE hwy::hwy)
  target_compile_definitions(gable_core PRIVATE GABLE_HAS_HIGHWAY)
  # Highway includes each file once more for every instruction set.
  target_include_directories(gable_core PRIVATE "${PROJECT_SOURCE_DIR}/src/cpu")
endif()

# The CPU kernels: no errno and no trapping, so that loops with sqrt and selects vectorize; never
# -ffast-math, since NaN must propagate.
set(cpu_flags -O3 -fno-math-errno -fno-trapping-math)
if(NOT gable_has_openmp)
  list(APPEND cpu_flags -fopenmp-simd)  # vector pragmas need no OpenMP library
endif()
if(GABLE_NATIVE)
  list(APPEND cpu_flags -march=native)
endif()
if(GABLE_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  list(REMOVE_ITEM cpu_flags -O3)
endif()
set_source_files_properties(${gable_cpu_sources} PROPERTIES COMPILE_OPTIONS "${cpu_flags}")
set_property(SOURCE "${PROJECT_SOURCE_DIR}/src/cpu/random.cpp"
             APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=off)

add_library(gable_gable INTERFACE)
add_library(gable::gable ALIAS gable_gable)
set_target_properties(gable_gable PROPERTIES EXPORT_NAME gable)
target_link_libraries(gable_gable INTERFACE gable_core)
set(gable_targets gable_core gable_gable)
if(gable_has_cuda)
  add_subdirectory(cuda)
  target_link_libraries(gable_gable INTERFACE gable_cuda)
  list(APPEND gable_targets gable_cuda)
endif()

# gable::data holds what needs libraries (images, archives, JSON files) and the trainer on top.
file(GLOB gable_data_sources CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/src/data/*.cpp" "${PROJECT_SOURCE_DIR}/src/io/*.cpp"
     "${PROJECT_SOURCE_DIR}/src/train/*.cpp")
find_package(JPEG QUIET)
find_package(LibArchive QUIET)
find_package(nlohmann_json QUIET)
find_package(Threads REQUIRED)
if(gable_data_sources AND JPEG_FOUND AND LibArchive_FOUND AND nlohmann_json_FOUND)
  add_library(gable_data ${gable_data_sources})
  add_library(gable::data ALIAS gable_data)
  set_target_properties(gable_data PROPERTIES EXPORT_NAME data
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} POSITION_INDEPENDENT_CODE ON
    DEFINE_SYMBOL "" INSTALL_RPATH "$ORIGIN")
  target_link_libraries(gable_data PUBLIC gable_core
    PRIVATE $<BUILD_INTERFACE:gable_build_flags> $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>
            JPEG::JPEG LibArchive::LibArchive Threads::Threads)
  target_link_libraries(gable_gable INTERFACE gable_data)
  list(APPEND gable_targets gable_data)
  set(gable_has_data TRUE)
else()
  message(STATUS "gable: data and files left out (need libjpeg, libarchive, nlohmann-json)")
  set(gable_has_data FALSE)
endif()
