# Third-party code: what we need, and one status line for each thing we can do without.
find_package(nlohmann_json 3.10 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
set(ZLIB_USE_STATIC_LIBS ${BUBBLESCOPE_STATIC_RUNTIME})
find_package(ZLIB QUIET)
if(NOT ZLIB_FOUND)  # no static zlib on this system
  set(ZLIB_USE_STATIC_LIBS OFF)
  find_package(ZLIB REQUIRED)
endif()

# Our own static build of fmt where we know how; see fmt.cc.
if(fmt_VERSION VERSION_LESS 10)
  add_library(bubblescope_fmt OBJECT ${CMAKE_CURRENT_LIST_DIR}/fmt.cc)
  target_include_directories(bubblescope_fmt SYSTEM PUBLIC
                             $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_features(bubblescope_fmt PUBLIC cxx_std_20)
else()
  add_library(bubblescope_fmt INTERFACE)
  target_link_libraries(bubblescope_fmt INTERFACE fmt::fmt)
endif()

# Finishes one optional dependency: a status line, or an error where it was asked for by ON.
function(report_optional name found detail effect)
  if(found)
    message(STATUS "${name}: found (${detail})")
  elseif("${BUBBLESCOPE_${name}}" STREQUAL "ON")
    message(FATAL_ERROR "BUBBLESCOPE_${name}=ON, but ${name} was not found")
  elseif("${BUBBLESCOPE_${name}}" STREQUAL "OFF")
    message(STATUS "${name}: switched off; ${effect}")
  else()
    message(STATUS "${name}: not found; ${effect}")
  endif()
endfunction()

if(BUBBLESCOPE_GRAPHVIZ)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(gvc QUIET IMPORTED_TARGET libgvc)
  endif()
endif()
report_optional(GRAPHVIZ "${gvc_FOUND}" "libgvc ${gvc_VERSION}" "graphs are written as .dot only")

# Opened at run time, when real work is asked for: only its name must be known here.
if(BUBBLESCOPE_OPENBLAS)
  find_library(OPENBLAS_LIBRARY NAMES openblas libopenblas.so.0)
  if(OPENBLAS_LIBRARY)
    set(BUBBLESCOPE_OPENBLAS_SONAME ${CMAKE_SHARED_LIBRARY_PREFIX}openblas${CMAKE_SHARED_LIBRARY_SUFFIX})
    if(NOT APPLE)
      string(APPEND BUBBLESCOPE_OPENBLAS_SONAME ".0")
    endif()
  endif()
endif()
report_optional(OPENBLAS "${BUBBLESCOPE_OPENBLAS_SONAME}" "${OPENBLAS_LIBRARY}" "matrix products by plain loops")

if(BUBBLESCOPE_CUDA)
  find_package(CUDAToolkit QUIET)
endif()
report_optional(CUDA "${CUDAToolkit_FOUND}" "toolkit ${CUDAToolkit_VERSION}" "no backend for GPUs")

if(BUBBLESCOPE_NCCL)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
endif()
report_optional(NCCL "${NCCL_INCLUDE_DIR}" "${NCCL_INCLUDE_DIR}" "no backend for several GPUs")

if(BUBBLESCOPE_MPI)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
report_optional(MPI "${MPI_CXX_FOUND}" "MPI ${MPI_CXX_VERSION}" "no backend for several processes")
