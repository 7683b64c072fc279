# Installs the program and its modules (component `program`), and the headers with a library for other projects
# (component `development`).
#
# The library is static and contains the very objects of the program, so nothing has to be compiled twice. Its schedules
# register themselves, and a linker drops such objects from an archive; bubblescope::bubblescope, defined in
# bubblescope-config.cmake.in, therefore links the whole archive.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS sim/*.h schedules/*.h traces/*.h exec/*.h)

add_library(bubblescope_archive STATIC)
target_link_libraries(bubblescope_archive PRIVATE $<BUILD_INTERFACE:bubblescope_all> ZLIB::ZLIB ${CMAKE_DL_LIBS})
set(bubblescope_dependencies ZLIB)
get_target_property(fmt_type bubblescope_fmt TYPE)
if(NOT fmt_type STREQUAL "OBJECT_LIBRARY")  # fmt is the system's, so those who link the archive need it, too
  target_link_libraries(bubblescope_archive PRIVATE fmt::fmt)
  list(APPEND bubblescope_dependencies fmt)
endif()
target_compile_features(bubblescope_archive PUBLIC cxx_std_20)
target_sources(bubblescope_archive PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
set_target_properties(bubblescope_archive PROPERTIES
  OUTPUT_NAME bubblescope EXPORT_NAME archive LINKER_LANGUAGE CXX)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/bubblescope)
install(TARGETS bubblescope_archive EXPORT bubblescope
        ARCHIVE COMPONENT development
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/bubblescope COMPONENT development)
install(EXPORT bubblescope NAMESPACE bubblescope:: FILE bubblescope-targets.cmake DESTINATION ${package_dir}
        COMPONENT development)
install(TARGETS bubblescope RUNTIME COMPONENT program)
foreach(module bubblescope_graphviz bubblescope_mpi bubblescope_cuda bubblescope_nccl)
  if(TARGET ${module})
    install(TARGETS ${module} DESTINATION ${BUBBLESCOPE_MODULE_FOLDER} COMPONENT program)
  endif()
endforeach()

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/bubblescope-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
configure_file(tools/cmake/bubblescope-config.cmake.in ${PROJECT_BINARY_DIR}/bubblescope-config.cmake @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/bubblescope-config.cmake ${PROJECT_BINARY_DIR}/bubblescope-config-version.cmake
        DESTINATION ${package_dir} COMPONENT development)
# Debian wants the licence of each package in a folder of its name.
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/bubblescope RENAME copyright COMPONENT program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libbubblescope-dev RENAME copyright
        COMPONENT development)
