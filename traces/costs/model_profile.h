// Measured layers: PipeDream's and DAPPLE's graph files, Aceso's csv, and our own cost files.
//
//   node4 -- Conv2d(64, 64) -- forward_compute_time=1.2, backward_compute_time=2.5, (one line)
//       activation_size=822083584.000, parameter_size=147712.000
//   <TAB>node3 -- node4
//
// Times are ms, sizes bytes; an activation may be a list "[a; b]"; " -- stage_id=K" at the end of a
// node is ignored, as is a missing line end. A source called "Input..." holds the time of loading
// data and is left out, as are sinks called "__getitem__...". Graphs with hardly any edges (some of
// DAPPLE's) are read as chains in the order of the nodes' numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/model/layer_graph.h"

namespace bubblescope::traces {

/// Reads a profile; "-" is stdin. The stages of a cost file become a chain of layers, and the graph
/// keeps the file's table. The rows of a layer in an Aceso profile stand for `repeats` layers.
/// Throws Error with file, line and text of the first fault.
LayerGraph read_model_profile(const std::string& path, std::int32_t repeats = 1);
LayerGraph parse_model_profile(std::string_view text, const std::string& file,
                               std::int32_t repeats = 1);

}  // namespace bubblescope::traces
