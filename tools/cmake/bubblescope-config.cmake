# find_package(bubblescope CONFIG) provides the target bubblescope::bubblescope; needs CMake 3.24.
include(CMakeFindDependencyMacro)
find_dependency(ZLIB)
include(${CMAKE_CURRENT_LIST_DIR}/bubblescope-targets.cmake)

if(NOT TARGET bubblescope::bubblescope)
  # The whole archive is linked, because nothing refers to the objects that register the schedules.
  add_library(bubblescope::bubblescope INTERFACE IMPORTED)
  target_link_libraries(bubblescope::bubblescope INTERFACE $<LINK_LIBRARY:WHOLE_ARCHIVE,bubblescope::archive>)
endif()
