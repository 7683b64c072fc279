// A way out of MPI calls that wait for other processes by themselves: its start and its end.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "exec/runtime/limits.h"

namespace bubblescope::exec {

/// MPI starts slowly on a machine with other work: less than this is not held against a process
/// that runs.
inline constexpr Nanos kMinMpiStart = 20'000'000'000;

/// While it lives, a call into MPI may take the limits' timeout, and longer where no process of
/// this host is seen to be stopped: kMinMpiStart at least. Then Limits::abandon() is called with
/// a message that names the stopped one, and has to end this process; the launcher ends the others.
/// After Ctrl-C it is called soon.
class MpiWatchdog {
 public:
  /// `call` is what MPI does: "start", "end".
  MpiWatchdog(const Limits& limits, std::string call);
  ~MpiWatchdog();
  MpiWatchdog(const MpiWatchdog&) = delete;
  MpiWatchdog& operator=(const MpiWatchdog&) = delete;

 private:
  void watch();

  Limits limits_;
  std::string call_;
  std::mutex mutex_;
  std::condition_variable returned_;
  bool has_returned_ = false;
  std::thread thread_;
};

/// What holds up a run of several processes, as far as this host shows it: "rank 2 does not answer:
/// its process 4711 is stopped"; empty: nothing that could be seen.
std::string find_stopped_process();

}  // namespace bubblescope::exec
