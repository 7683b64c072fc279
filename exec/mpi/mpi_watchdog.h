// A watchdog ends the program when MPI waits forever. MPI_Init and MPI_Finalize wait for all
// processes and cannot be cancelled, so a process that is stopped or missing would hang the others.
//
//   after the timeout  "rank 2 does not answer: ...", if its process is on this host and stopped
//   after 20 s         "a rank does not answer: ...", if no stopped process is found
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "exec/runtime/limits.h"

namespace bubblescope::exec {

/// The minimum time for MPI's start if no stopped process is found, because MPI starts slowly on a
/// busy machine.
inline constexpr Nanos kMinMpiStart = 20'000'000'000;

/// Watches one call into MPI until it is destroyed. After the limits' timeout it looks for stopped
/// processes of this run on this host, and if it finds one, calls Limits::abandon() with a message
/// that names it. Without one it waits for kMinMpiStart at least. After Ctrl-C it calls abandon()
/// soon.
class MpiWatchdog {
 public:
  /// `call` names what MPI does: "start" or "end".
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

/// Finds a stopped process of this run on this host: "rank 2 does not answer: its process 4711 is
/// stopped". Empty if there is none.
std::string find_stopped_process();

}  // namespace bubblescope::exec
