// Short notation for Chrome traces, for tests of their readers.
#pragma once

#include <string>

namespace bubblescope::tests {

/// Builds the events of a Chrome trace.
class Events {
 public:
  Events& thread(int pid, int tid, const std::string& name) {
    return add(R"({"ph":"M","name":"thread_name","pid":)" + std::to_string(pid) + R"(,"tid":)" +
               std::to_string(tid) + R"(,"args":{"name":")" + name + R"("}})");
  }
  Events& slice(const std::string& name, int pid, int tid, int start, int duration,
                const std::string& arguments = "") {
    return add(R"({"ph":"X","name":")" + name + place(pid, tid, start, duration) + R"(,"args":{)" +
               arguments + "}}");
  }
  /// A slice of one of Kineto's categories.
  Events& slice_of(const std::string& category, const std::string& name, int pid, int tid,
                   int start, int duration) {
    return add(R"({"ph":"X","cat":")" + category + R"(","name":")" + name +
               place(pid, tid, start, duration) + R"(,"args":{}})");
  }
  std::string list() const { return "[" + events_ + "]"; }
  std::string kineto(int rank) const {
    return R"({"schemaVersion":1,"distributedInfo":{"rank":)" + std::to_string(rank) +
           R"(},"traceEvents":[)" + events_ + "]}";
  }

 private:
  static std::string place(int pid, int tid, int start, int duration) {
    return R"(","pid":)" + std::to_string(pid) + R"(,"tid":)" + std::to_string(tid) + R"(,"ts":)" +
           std::to_string(start) + R"(,"dur":)" + std::to_string(duration);
  }
  Events& add(const std::string& event) {
    events_ += (events_.empty() ? "" : ",\n") + event;
    return *this;
  }
  std::string events_;
};

/// The arguments with which StragglerAnalysis identifies the op of a slice.
inline std::string step_args(int step, int microbatch, int chunk = 0) {
  return "\"step\":" + std::to_string(step) + ",\"mb_id\":" + std::to_string(microbatch) +
         ",\"model_chunk\":" + std::to_string(chunk);
}

/// Names the threads of two ranks in process `pid`; each rank has a second thread for its messages.
inline void name_threads(Events& events, int pid) {
  const int first = pid * 100;
  events.thread(pid, first, "PP rank 0, TP rank 0, compute")
      .thread(pid, first + 1, "PP rank 0, TP rank 0, pp-comm")
      .thread(pid, first + 10, "PP rank 1, TP rank 0, compute")
      .thread(pid, first + 11, "PP rank 1, TP rank 0, pp-comm");
}

}  // namespace bubblescope::tests
