// Renders graphs with Graphviz, which is loaded on first use.
#pragma once

#include <string>

namespace bubblescope::traces {

/// Renders DOT text as "svg", "png" or "pdf". `module` is the path of bubblescope_graphviz.so.
/// Throws Error where the module is missing, with what to install, or where Graphviz refuses.
std::string render_graph(const std::string& dot, const std::string& format,
                         const std::string& module);

}  // namespace bubblescope::traces
