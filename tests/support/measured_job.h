// Jobs of data-parallel replicas with known times, as StragglerAnalysis writes their traces.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace bubblescope::tests {

/// The events of a trace, with a compute and a communication thread per rank. All times are
/// microseconds.
class JobTrace {
 public:
  JobTrace(int replicas, int ranks);

  void add(const std::string& name, int replica, int thread, int start, int end,
           const nlohmann::json& args);
  std::string text() const;

 private:
  nlohmann::json events_ = nlohmann::json::array();
};

/// All times are microseconds.
struct JobOp {
  int replica = 0;
  int step = 0;
  int rank = 0;
  int microbatch = 0;
  bool is_backward = false;
};

/// Every rank runs the forwards of all micro-batches, then their backwards, and then reduces its
/// gradients together with the same rank of the other replicas.
struct JobPlan {
  int replicas = 2;
  int ranks = 4;
  int microbatches = 6;
  int steps = 8;
  std::function<int(const JobOp&)> duration;
  std::function<int(const JobOp&)> late = {};  ///< when its replica begins the step; empty: 0
  std::string collective = "my-all-reduce";
  int reduction = 60'000;  ///< from the time when the last replica comes to it
  int between = 20'000;    ///< the steps
};

struct MeasuredJob {
  std::string text;      ///< the trace
  double mean_step = 0;  ///< from the first op of a step to the end of its last reduction
};

MeasuredJob run_job(const JobPlan& plan);

}  // namespace bubblescope::tests
