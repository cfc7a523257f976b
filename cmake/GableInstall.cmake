# Install and export: a relocatable package for find_package(gable) and pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gable")
install(TARGETS ${gable_targets} EXPORT gableTargets FILE_SET HEADERS)
install(EXPORT gableTargets NAMESPACE gable:: DESTINATION "${package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/gableConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/gableConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/gableConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/gableConfig.cmake"
  "${PROJECT_BINARY_DIR}/gableConfigVersion.cmake" DESTINATION "${package_dir}")
