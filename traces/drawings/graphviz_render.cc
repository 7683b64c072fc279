// The rendering module: the only file that links to Graphviz.
#include <graphviz/gvc.h>

#include <memory>

#include "traces/drawings/graphviz_module.h"

namespace {

struct FreeContext {
  void operator()(GVC_t* context) const { gvFreeContext(context); }
};
struct CloseGraph {
  void operator()(Agraph_t* graph) const { agclose(graph); }
};
using Context = std::unique_ptr<GVC_t, FreeContext>;
using Graph = std::unique_ptr<Agraph_t, CloseGraph>;

BubblescopeImage failure(const char* error) { return {nullptr, 0, error}; }

}  // namespace

BubblescopeImage bubblescope_render_graph(const char* dot, const char* format) {
  const Context context(gvContext());
  if (!context) return failure("Graphviz does not start");
  const Graph graph(agmemread(dot));
  if (!graph) return failure("Graphviz does not read the graph");
  if (gvLayout(context.get(), graph.get(), "nop2") != 0)
    return failure("Graphviz does not lay the graph out");
  char* bytes = nullptr;
  unsigned int size = 0;
  const int failed = gvRenderData(context.get(), graph.get(), format, &bytes, &size);
  gvFreeLayout(context.get(), graph.get());
  if (failed != 0) return failure("Graphviz has no plugin that writes this format");
  return {bytes, size, nullptr};
}

void bubblescope_release_image(BubblescopeImage image) {
  if (image.bytes != nullptr) gvFreeRenderData(image.bytes);
}
