# find_package(bubblescope CONFIG) gives the target bubblescope::bubblescope; needs CMake 3.24.
include(CMakeFindDependencyMacro)
find_dependency(ZLIB)
include(${CMAKE_CURRENT_LIST_DIR}/bubblescope-targets.cmake)
