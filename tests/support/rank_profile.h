// Short notation for profiles of PyTorch, for tests of their reader.
#pragma once

#include <string>

#include "sim/ir/error.h"
#include "traces/files/trace_format.h"

namespace bubblescope::tests {

/// Builds a profile of one rank concisely; times are microseconds.
class RankProfile {
 public:
  explicit RankProfile(int rank, int world_size = 2) : rank_(rank), world_size_(world_size) {}

  RankProfile& event(const std::string& category, const std::string& name, int start, int duration,
                     int thread = 1, const std::string& arguments = "") {
    return add(R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","pid":)" +
               std::to_string(process_) + R"(,"tid":)" + std::to_string(thread) + R"(,"ts":)" +
               std::to_string(start) + R"(,"dur":)" + std::to_string(duration) + R"(,"args":{)" +
               arguments + "}}");
  }
  RankProfile& annotation(const std::string& name, int start, int duration) {
    return event("user_annotation", name, start, duration);
  }
  RankProfile& call(const std::string& name, int start, int duration) {
    return event("cpu_op", name, start, duration);
  }
  RankProfile& gradient(int start, int duration, int thread = 1) {
    return event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", start, duration,
                 thread);
  }
  /// Adds a call whose gradient function is evaluated later.
  RankProfile& forward_call(int start, int duration) {
    call("aten::mm", start, duration);
    return add(R"({"ph":"s","cat":"fwdbwd","name":"fwdbwd","id":1,"pid":)" +
               std::to_string(process_) + R"(,"tid":1,"ts":)" + std::to_string(start) + "}");
  }
  /// The process of the events that are added from now on.
  RankProfile& process(int number) {
    process_ = number;
    return *this;
  }
  RankProfile& groups(const std::string& json) {
    groups_ = json;
    return *this;
  }

  std::string text() const {
    return R"({"schemaVersion":1,"host_name":"one","distributedInfo":{"rank":)" +
           std::to_string(rank_) + R"(,"world_size":)" + std::to_string(world_size_) +
           R"(,"pg_config":[)" + groups_ + R"(]},"traceEvents":[)" + events_ + "]}";
  }
  traces::ObservedTrace read() const {
    return traces::parse_trace({"rank" + std::to_string(rank_) + ".json", text()});
  }

 private:
  RankProfile& add(const std::string& event) {
    events_ += (events_.empty() ? "" : ",\n") + event;
    return *this;
  }

  int rank_;
  int world_size_;
  int process_ = 7;
  std::string groups_;
  std::string events_;
};

/// The op or message of a trace that is written so: "1RECV_F0". Throws Error without one.
inline const traces::ObservedOp& op_of(const traces::ObservedTrace& trace,
                                       const std::string& text) {
  for (const traces::ObservedOp& observed : trace.ops)
    if (to_string(observed.op) == text) return observed;
  throw Error("no op " + text);
}

}  // namespace bubblescope::tests
