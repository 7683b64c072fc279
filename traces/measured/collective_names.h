// Knows collectives by their names.
#pragma once

#include <string>

namespace bubblescope::traces {

/// Whether a name says that it is a collective: all-gather, reduce_scatter, AllReduce and the like.
bool is_named_like_collective(const std::string& name);

}  // namespace bubblescope::traces
