// The dependency graph in Graphviz's DOT language.
#pragma once

#include <cstddef>
#include <string>

#include "traces/format.h"

namespace bubblescope {

/// Instructions as boxes, a row per rank (and one more per lane that carries messages), time to the
/// right, boxes as wide as they last:
///
///   digraph "1f1b" {
///     layout=nop2
///     subgraph cluster_rank0 { label="rank 0" n0 [label="0F0" pos="38,0" ...] ... }
///     n0 -> n2 [style=dashed color=red penwidth=2 ...]
///
/// Edges: black what an op waits for on its own rank, dashed a message to another rank (labelled
/// with its latency where it has one), grey the order of a lane. A message that occupies a lane is
/// a box of its own. Red and bold: the critical path; dotted where it leads through a message that
/// waited for its receive to be posted. Tooltips tell times and slack.
/// Positions are in the file, so `dot -Tsvg` draws it as it is; `dot -Kdot` makes a layout of its
/// own.
std::string write_dot(const Recording& recording);

/// How many boxes the graph has.
std::size_t count_dot_nodes(const Program& program);

}  // namespace bubblescope
