// What the program and its rendering module, bubblescope_graphviz.so, know of each other. The
// module alone is linked to libgvc, so that only who renders a graph pays for loading it.
#pragma once

#include <cstddef>

extern "C" {

/// Either bytes, or an error in words; both belong to the module until they are released.
struct BubblescopeImage {
  char* bytes;
  std::size_t size;
  const char* error;  ///< null: all went well
};

/// Lays out and renders DOT text; `format` is "svg", "png", "pdf" or another that Graphviz writes.
BubblescopeImage bubblescope_render_graph(const char* dot, const char* format);

/// Gives an image back to the module.
void bubblescope_release_image(BubblescopeImage image);

}  // extern "C"
