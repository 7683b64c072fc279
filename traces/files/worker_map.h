// A heat map of workers by steps: which rank of which replica is slow, and when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bubblescope::traces {

/// Neighbouring steps that share a column.
struct WorkerMapColumn {
  std::int64_t first = 0;  ///< the number of its first step
  std::int64_t last = 0;
};

struct WorkerMapRow {
  std::string worker;             ///< "rank 3", or "rank 3 of replica 0" where there are replicas
  std::vector<double> slowdowns;  ///< [column]: the worker's S (sim/analysis/slowdown.h), at most
};

/// The slowest worker comes first. Workers that never reach kNoticedSlowdown are left out.
struct WorkerMap {
  static constexpr double kNoticedSlowdown = 1.02;

  std::vector<WorkerMapColumn> columns;
  std::vector<WorkerMapRow> rows;  ///< empty if there is nothing to show
  std::size_t unnoticed = 0;       ///< workers that are never slow
  std::size_t cut = 0;             ///< workers that are slow, but less than those that are shown
};

}  // namespace bubblescope::traces
