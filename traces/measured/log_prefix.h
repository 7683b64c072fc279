// The beginnings that launchers and loggers give to the lines of a training log.
//
//   worker-3: ...                                      pdsh; "[worker-3]: " and "3: " (srun -l) too
//   [default7]:[2025-03-02 10:11:12,123] INFO ...      torchrun, then a logger
//   (TaskRunner pid=3456) ...                          Ray
//   2025-03-02T10:11:12.123456789Z ...                 Kubernetes
//
// A launcher's name tells the lines of several processes apart. Times and levels say nothing.
#pragma once

#include <string>
#include <string_view>

namespace bubblescope::traces {

struct LogPrefix {
  std::string writer;     ///< what a launcher names the process or node: "worker-3:"; may be empty
  bool is_known = false;  ///< nothing else stands before the message
};

/// Reads what stands before the message of a line.
LogPrefix read_prefix(std::string_view head);

/// Returns the text without the escape sequences that colour a terminal.
std::string remove_colours(std::string_view text);

}  // namespace bubblescope::traces
