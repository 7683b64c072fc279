// Rendering graphs through Graphviz, which is loaded when a graph is rendered and not before.
#pragma once

#include <string>

namespace bubblescope {

/// DOT text as a picture: "svg", "png", "pdf". `module` is the file bubblescope_graphviz.so.
/// Throws Error where it is missing, with what to install, or where Graphviz refuses.
std::string render_graph(const std::string& dot, const std::string& format,
                         const std::string& module);

}  // namespace bubblescope
