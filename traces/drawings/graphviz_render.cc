// The rendering module: the only file that links to Graphviz.
#include <graphviz/gvc.h>

#include <memory>

#include "traces/drawings/graphviz_module.h"

namespace {

struct CloseGraph {
  void operator()(Agraph_t* graph) const { agclose(graph); }
};
using Graph = std::unique_ptr<Agraph_t, CloseGraph>;

/// The one context of the process, which is never freed: Graphviz's text plugin remembers the name
/// of the last font, a string that belongs to the context, and reads it for the next graph.
GVC_t* graphviz() {
  static GVC_t* const context = gvContext();
  return context;
}

BubblescopeImage failure(const char* error) { return {nullptr, 0, error}; }

}  // namespace

BubblescopeImage bubblescope_render_graph(const char* dot, const char* format) {
  GVC_t* const context = graphviz();
  if (context == nullptr) return failure("Graphviz does not start");
  const Graph graph(agmemread(dot));
  if (!graph) return failure("Graphviz does not read the graph");
  if (gvLayout(context, graph.get(), "nop2") != 0)
    return failure("Graphviz does not lay the graph out");
  char* bytes = nullptr;
  unsigned int size = 0;
  const int failed = gvRenderData(context, graph.get(), format, &bytes, &size);
  gvFreeLayout(context, graph.get());
  if (failed != 0) return failure("Graphviz has no plugin that writes this format");
  return {bytes, size, nullptr};
}

void bubblescope_release_image(BubblescopeImage image) {
  if (image.bytes != nullptr) gvFreeRenderData(image.bytes);
}
