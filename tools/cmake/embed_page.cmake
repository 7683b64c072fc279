# Writes a C++ source that contains the files of traces/drawings/html as text:
#   cmake -DFOLDER=traces/drawings/html -DOUTPUT=html_page.cc -P embed_page.cmake
file(GLOB scripts ${FOLDER}/*.js)
list(SORT scripts)

# Appends a file as a literal. Compilers need not accept more than 65,536 bytes in one, however it is divided; gcc takes
# fewer in a piece.
function(append_literal path after)
  file(READ ${path} text)
  string(LENGTH "${text}" length)
  if(length GREATER 65000)
    message(FATAL_ERROR "${path} has ${length} bytes, more than a string literal may have; divide it")
  endif()
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 12000 piece)
    file(APPEND ${OUTPUT} "R\"page(${piece})page\"\n")
    math(EXPR at "${at} + 12000")
  endwhile()
  file(APPEND ${OUTPUT} "${after}")
endfunction()

file(WRITE ${OUTPUT} "#include \"traces/drawings/html_page.h\"\n\nnamespace bubblescope::traces {\n\n"
     "std::string_view html_skeleton() {\n  return ")
append_literal(${FOLDER}/page.html ";\n}\n\n")
file(APPEND ${OUTPUT} "std::string_view html_style() {\n  return ")
append_literal(${FOLDER}/page.css ";\n}\n\n")
file(APPEND ${OUTPUT} "std::span<const std::string_view> html_scripts() {\n  static constexpr std::string_view kScripts[] = {\n\"'use strict';\\n\",\n")
foreach(path IN LISTS scripts)
  append_literal(${path} ",\n")
endforeach()
file(APPEND ${OUTPUT} "  };\n  return kScripts;\n}\n\n}  // namespace bubblescope::traces\n")
