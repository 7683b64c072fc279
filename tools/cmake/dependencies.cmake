# Third-party code: required libraries, and one status line for each optional one.
find_package(nlohmann_json 3.10 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
set(ZLIB_USE_STATIC_LIBS ${BUBBLESCOPE_STATIC_RUNTIME})
find_package(ZLIB QUIET)
if(NOT ZLIB_FOUND)  # no static zlib on this system
  set(ZLIB_USE_STATIC_LIBS OFF)
  find_package(ZLIB REQUIRED)
endif()

# Links our own static build of fmt for the versions that we know; see fmt.cc.
if(fmt_VERSION VERSION_LESS 10)
  add_library(bubblescope_fmt OBJECT ${CMAKE_CURRENT_LIST_DIR}/fmt.cc)
  target_include_directories(bubblescope_fmt SYSTEM PUBLIC
                             $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_features(bubblescope_fmt PUBLIC cxx_std_20)
  target_compile_options(bubblescope_fmt PRIVATE $<$<CONFIG:Release>:-O1>)
else()
  add_library(bubblescope_fmt INTERFACE)
  target_link_libraries(bubblescope_fmt INTERFACE fmt::fmt)
endif()

# Reports one optional dependency: a status line, or an error where it was required by ON.
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

# They are loaded at run time, for real work only, so the build needs nothing but their names.
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

# A toolkit alone is not enough: it must contain a working compiler.
if(BUBBLESCOPE_CUDA)
  find_package(CUDAToolkit QUIET)
  include(CheckLanguage)
  set(CMAKE_MESSAGE_LOG_LEVEL_BEFORE ${CMAKE_MESSAGE_LOG_LEVEL})
  set(CMAKE_MESSAGE_LOG_LEVEL WARNING)
  check_language(CUDA)
  set(CMAKE_MESSAGE_LOG_LEVEL ${CMAKE_MESSAGE_LOG_LEVEL_BEFORE})
  if(CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER AND NOT BUBBLESCOPE_SANITIZE)
    set(BUBBLESCOPE_HAS_CUDA ON)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90)  # the code of compute capability 9.0, and PTX for later ones
    endif()
    enable_language(CUDA)
    # Without CUPTI the module cannot record what devices really do.
    find_path(CUPTI_INCLUDE_DIR cupti.h HINTS ${CUDAToolkit_TARGET_DIR}/extras/CUPTI/include
              ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include ${CUDAToolkit_INCLUDE_DIRS})
  endif()
endif()
report_optional(CUDA "${BUBBLESCOPE_HAS_CUDA}" "toolkit ${CUDAToolkit_VERSION}" "no backend for GPUs")
report_optional(CUPTI "${CUPTI_INCLUDE_DIR}" "${CUPTI_INCLUDE_DIR}" "no records of kernels")

if(BUBBLESCOPE_NCCL)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR})
endif()
report_optional(NCCL "${NCCL_LIBRARY}" "${NCCL_LIBRARY}" "no backend for processes with a GPU each")

if(BUBBLESCOPE_MPI)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
report_optional(MPI "${MPI_CXX_FOUND}" "MPI ${MPI_CXX_VERSION}" "no backend for several processes")
