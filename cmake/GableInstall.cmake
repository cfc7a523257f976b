# SPDX-License-Identifier: Apache-2.0
# Install and export: a relocatable package for find_package(gable) and pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gable")
install(TARGETS ${gable_targets} EXPORT gableTargets FILE_SET HEADERS
  FILE_SET bridges)
install(EXPORT gableTargets NAMESPACE gable:: DESTINATION "${package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/gableConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/gableConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/gableConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/gableConfig.cmake"
  "${PROJECT_BINARY_DIR}/gableConfigVersion.cmake" DESTINATION "${package_dir}")

# pkg-config: the prefix is found from the file's own place, so that the tree can be moved.
file(RELATIVE_PATH gable_pc_up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" gable_pc_up "${gable_pc_up}")
set(gable_pc_libs "-lgable")
if(gable_has_data)
  set(gable_pc_libs "-lgable_data -lgable")
endif()
if(NOT BUILD_SHARED_LIBS)  # a static library passes on what it needs
  if(gable_has_data)
    string(APPEND gable_pc_libs " -ljpeg -larchive -pthread")
  endif()
  if(gable_has_openmp)
    string(APPEND gable_pc_libs " ${OpenMP_CXX_FLAGS}")
  endif()
  if(gable_has_highway)
    string(APPEND gable_pc_libs " -lhwy")
  endif()
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/gable.pc.in" "${PROJECT_BINARY_DIR}/gable.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/gable.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
