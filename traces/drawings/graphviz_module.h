// The interface between the program and its rendering module, bubblescope_graphviz.so. Only the
// module links to libgvc, so that only users who render graphs pay for loading it.
#pragma once

#include <cstddef>

extern "C" {

/// Either bytes, or an error in words; the module owns both until they are released.
struct BubblescopeImage {
  char* bytes;
  std::size_t size;
  const char* error;  ///< null: success
};

/// Lays out and renders DOT text; `format` is "svg", "png", "pdf" or another that Graphviz writes.
BubblescopeImage bubblescope_render_graph(const char* dot, const char* format);

/// Frees an image.
void bubblescope_release_image(BubblescopeImage image);

}  // extern "C"
