// Times jobs and writes their traces.
#include "tests/support/measured_job.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

namespace bubblescope::tests {

namespace {

using Json = nlohmann::json;

class JobWriter {
 public:
  explicit JobWriter(const JobPlan& plan) : plan_(plan), trace_(plan.replicas, plan.ranks) {}

  MeasuredJob run() {
    int time = 0;
    double sum = 0;
    for (int step = 0; step < plan_.steps; ++step) {
      const int end = run_step(step, time);
      sum += end - time;
      time = end + plan_.between;
    }
    return {trace_.text(), sum / plan_.steps};
  }

 private:
  using Ends = std::vector<int>;  ///< [rank] in microseconds

  /// Runs the ops of a replica in one direction; returns when each rank has ended.
  void run_ops(JobOp op, Ends& free) {
    const int last = plan_.ranks - 1;
    for (op.microbatch = 0; op.microbatch < plan_.microbatches; ++op.microbatch) {
      int input = 0;
      for (int at = 0; at <= last; ++at) {
        op.rank = op.is_backward ? last - at : at;
        int& end = free[static_cast<std::size_t>(op.rank)];
        const int start = std::max(end, input);
        input = end = start + plan_.duration(op);
        trace_.add(op.is_backward ? "backward-compute" : "forward-compute", op.replica, 2 * op.rank,
                   start, end, {{"step", op.step}, {"mb_id", op.microbatch}});
      }
    }
  }

  int run_step(int step, int begin) {
    std::vector<Ends> ends;
    for (int replica = 0; replica < plan_.replicas; ++replica) {
      const JobOp first{replica, step};
      const int late = plan_.late ? plan_.late(first) : 0;
      ends.emplace_back(static_cast<std::size_t>(plan_.ranks), begin + late);
      run_ops(first, ends.back());
      run_ops({replica, step, 0, 0, true}, ends.back());
    }
    int last = 0;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      int end = 0;
      for (const Ends& replica : ends) end = std::max(end, replica[at] + plan_.reduction);
      for (int replica = 0; replica < plan_.replicas; ++replica)
        trace_.add(plan_.collective, replica, 2 * rank + 1,
                   ends[static_cast<std::size_t>(replica)][at], end,
                   {{"step", step}, {"mb_id", -1}});
      last = std::max(last, end);
    }
    return last;
  }

  const JobPlan& plan_;
  JobTrace trace_;
};

}  // namespace

JobTrace::JobTrace(int replicas, int ranks) {
  for (int replica = 0; replica < replicas; ++replica)
    for (int thread = 0; thread < 2 * ranks; ++thread) {
      const std::string name = "PP rank " + std::to_string(thread / 2) + ", TP rank 0, " +
                               (thread % 2 == 0 ? "compute" : "communication");
      events_.push_back({{"ph", "M"},
                         {"name", "thread_name"},
                         {"pid", replica},
                         {"tid", thread},
                         {"args", {{"name", name}}}});
    }
}

void JobTrace::add(const std::string& name, int replica, int thread, int start, int end,
                   const Json& args) {
  events_.push_back({{"ph", "X"},
                     {"name", name},
                     {"pid", replica},
                     {"tid", thread},
                     {"ts", start},
                     {"dur", end - start},
                     {"args", args}});
}

std::string JobTrace::text() const { return Json{{"traceEvents", events_}}.dump(); }

MeasuredJob run_job(const JobPlan& plan) { return JobWriter(plan).run(); }

}  // namespace bubblescope::tests
