# Compiler settings: the targets bubblescope_build (for all of our code) and bubblescope_warnings.
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers need the sloppiness; the base directory lets several checkouts share the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${CCACHE})
endif()

add_library(bubblescope_warnings INTERFACE)
target_compile_options(bubblescope_warnings INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wpedantic
  # gcc 12 sees false overlaps and overflows where a std::string is assigned or added to (PR 105651, 105329), and
  # uninitialized members where a constant aggregate holds an empty vector; clang's own check stays
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds;-Wno-maybe-uninitialized>
  $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wno-sign-conversion>  # gcc's -Wconversion leaves it out too
  $<$<BOOL:${BUBBLESCOPE_WERROR}>:-Werror>)

add_library(bubblescope_build INTERFACE)
target_compile_features(bubblescope_build INTERFACE cxx_std_20)
# Results have the same digits on every machine: a * b + c is never rounded once, even where the processor could.
target_compile_options(bubblescope_build INTERFACE -ffp-contract=off)
target_include_directories(bubblescope_build INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(bubblescope_build INTERFACE bubblescope_warnings bubblescope_fmt)
set(CMAKE_CXX_EXTENSIONS OFF)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)  # lets ccache see into precompiled headers
  # The compiler's garbage collector takes a sixth of its time, and spares 100 MB of the 700 that a group of sources takes.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-expand=400 --param ggc-min-heapsize=1048576>")
endif()
# ThreadSanitizer watches what runs in threads (watch_threads() below); all other objects are those of a release.
set(BUBBLESCOPE_SANITIZE_THREADS OFF)
if(BUBBLESCOPE_SANITIZE STREQUAL thread)
  set(BUBBLESCOPE_SANITIZE_THREADS ON)
  add_link_options(-fsanitize=thread)
elseif(BUBBLESCOPE_SANITIZE MATCHES thread)
  message(FATAL_ERROR "ThreadSanitizer goes with no other sanitizer; give BUBBLESCOPE_SANITIZE=thread alone")
elseif(BUBBLESCOPE_SANITIZE)
  add_compile_options(-fsanitize=${BUBBLESCOPE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BUBBLESCOPE_SANITIZE})
  if(BUBBLESCOPE_SANITIZE MATCHES "address")
    # AddressSanitizer stops at null pointers and outside of objects by itself. UBSan's checks of the same at every access
    # take a quarter of the compiler's time. Its check that every pointer is aligned takes a third of what is left, and only
    # a cast to another type makes one that is not: there are few, all where the system, a library or Python is called.
    add_compile_options(-fno-sanitize=null,object-size,alignment)
  endif()
endif()
if(BUBBLESCOPE_STATIC_RUNTIME)
  include(CheckLinkerFlag)
  check_linker_flag(CXX "-static-libstdc++;-static-libgcc" BUBBLESCOPE_HAS_STATIC_RUNTIME)
  if(BUBBLESCOPE_HAS_STATIC_RUNTIME)
    add_link_options(-static-libstdc++ -static-libgcc)
  endif()
  # A program at a fixed address has nothing to relocate when it starts: its thousands of pointers are linked.
  check_linker_flag(CXX "-no-pie" BUBBLESCOPE_HAS_NO_PIE)
  if(BUBBLESCOPE_HAS_NO_PIE)
    add_link_options("$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>")
  endif()
endif()

# Makes objects that fit into a program and into a shared library: the program and the extension module of Python have
# the same ones, so that a compiler cache which has built the one has nothing to compile for the other. Nothing in them
# can be replaced from outside, so that they are as fast as those of a program alone. Sanitized ones fit into programs only.
function(share_objects target)
  if(NOT BUBBLESCOPE_SANITIZE OR BUBBLESCOPE_SANITIZE_THREADS)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
                          CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  endif()
endfunction()

# Lets ThreadSanitizer watch a target that runs in threads. Functions of headers that several objects have are taken from
# the first of them, so that these targets are linked before others.
function(watch_threads)
  if(BUBBLESCOPE_SANITIZE_THREADS)
    foreach(target ${ARGN})
      target_compile_options(${target} PRIVATE -fsanitize=thread -fno-omit-frame-pointer -g1 $<$<CONFIG:Release>:-O1>)
    endforeach()
  endif()
endfunction()
