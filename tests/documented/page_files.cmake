# Extracts the files that a page of the documentation shows.
#
# A page names a file at the end of a sentence and shows it in the block that follows:
#
#   This is all of `schedules/relaxed_1f1b.cc`:
#
#   ```cpp
#   ...
#   ```
#
# A block marked cpp is a new file. A block marked diff changes a file of ours: the lines that it keeps and removes must
# be in that file, together and once.

# Writes a file only if that changes it, so that unchanged sources are not compiled again.
function(write_if_changed path content)
  set(before "")
  if(EXISTS ${path})
    file(READ ${path} before)
  endif()
  if(NOT before STREQUAL content)
    file(WRITE ${path} "${content}")
  endif()
endfunction()

# Sets result to the file of ours at `path`, changed by a diff of `page`.
function(apply_diff page path diff result)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${path})
  file(READ ${PROJECT_SOURCE_DIR}/${path} text)
  string(PREPEND text "\n")
  string(REGEX REPLACE "\n$" "" lines "\n${diff}")
  string(REGEX REPLACE "\n\\+[^\n]*" "" before "${lines}")
  string(REGEX REPLACE "\n-[^\n]*" "" after "${lines}")
  string(REGEX REPLACE "\n[- ]" "\n" before "${before}")
  string(REGEX REPLACE "\n[+ ]" "\n" after "${after}")
  string(FIND "${text}" "${before}\n" first)
  string(FIND "${text}" "${before}\n" last REVERSE)
  if(before STREQUAL "" OR first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "${page} changes lines of ${path} that are not there, or not once:${before}")
  endif()
  string(REPLACE "${before}\n" "${after}\n" text "${text}")
  string(SUBSTRING "${text}" 1 -1 text)
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Removes everything up to and including the first `mark` from the text, and sets front to the text before it.
macro(take_until mark)
  string(FIND "${text}" "${mark}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${page}: a block has no end")
  endif()
  string(SUBSTRING "${text}" 0 ${at} front)
  string(LENGTH "${mark}" length)
  math(EXPR at "${at} + ${length}")
  string(SUBSTRING "${text}" ${at} -1 text)
endmacro()

# Writes the files that a page shows to `folder`, each at its path there. Sets added to the sources that are new, and
# replaced to the paths of the sources that a diff changes.
function(write_page_files page folder added replaced)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
  file(READ ${page} text)
  set(new "")
  set(changed "")
  while(text MATCHES "`([A-Za-z0-9_/]+\\.(cc|h))`:\n\n```(cpp|diff)\n")
    set(path ${CMAKE_MATCH_1})
    set(ending ${CMAKE_MATCH_2})
    set(kind ${CMAKE_MATCH_3})
    take_until("${CMAKE_MATCH_0}")
    take_until("\n```")
    set(content "${front}\n")
    if(kind STREQUAL "diff")
      apply_diff(${page} ${path} "${content}" content)
    elseif(EXISTS ${PROJECT_SOURCE_DIR}/${path})
      message(FATAL_ERROR "${page} shows ${path} as a new file, but it exists; show a diff")
    endif()
    write_if_changed(${folder}/${path} "${content}")
    if(ending STREQUAL "cc" AND kind STREQUAL "diff")
      list(APPEND changed ${path})
    elseif(ending STREQUAL "cc")
      list(APPEND new ${folder}/${path})
    endif()
  endwhile()
  if(NOT new)
    message(FATAL_ERROR "${page} shows no new source (a sentence that ends with its `path`: and a block marked cpp)")
  endif()
  set(${added} ${new} PARENT_SCOPE)
  set(${replaced} ${changed} PARENT_SCOPE)
endfunction()
