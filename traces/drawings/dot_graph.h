// The dependency graph in Graphviz's DOT language.
#pragma once

#include <cstddef>
#include <string>

#include "traces/files/format.h"

namespace bubblescope::traces {

/// Boxes are instructions, in a row per rank (and one more per lane that carries messages), with
/// time to the right and widths in proportion to durations:
///
///   digraph "1f1b" {
///     layout=nop2
///     subgraph cluster_rank0 { label="rank 0" n0 [label="0F0" pos="38,0" ...] ... }
///     n0 -> n2 [style=dashed color=red penwidth=2 ...]
///
/// Edges are black for a dependency on the same rank, dashed for a message to another rank
/// (labelled with its latency where it has one), and grey for the order of a lane. A message that
/// occupies a lane is a box of its own. The critical path is red and bold, and dotted where it
/// passes through a message that waited for its receive to be posted. Tooltips show times and
/// slack.
/// The file contains positions, so `dot -Tsvg` draws it as laid out here; `dot -Kdot` computes its
/// own layout.
std::string write_dot(const StepRecord& record);

/// Counts the boxes of the graph.
std::size_t count_dot_nodes(const Program& program);

}  // namespace bubblescope::traces
