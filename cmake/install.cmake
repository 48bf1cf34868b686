# cmake --install: library, headers, CMake package (rkv::rkv), pkg-config file, licence. All files
# find each other by relative paths, so an installed tree can be moved.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rkv)
install(TARGETS rkv EXPORT rkv
  RUNTIME COMPONENT runtime
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT development)
install(DIRECTORY capi/include/rkv DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/librkv COMPONENT runtime)

install(EXPORT rkv NAMESPACE rkv:: FILE rkv-config.cmake DESTINATION ${package_dir}
  COMPONENT development)
# While the ABI is 0.x a minor version may break it.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rkv-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rkv-config-version.cmake DESTINATION ${package_dir}
  COMPONENT development)

set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pkgconfig_to_prefix /${pkgconfig_dir} /)
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix "${pkgconfig_to_prefix}")
configure_file(cmake/rkv.pc.in ${PROJECT_BINARY_DIR}/rkv.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rkv.pc DESTINATION ${pkgconfig_dir} COMPONENT development)
