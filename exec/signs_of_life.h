// While one process works for all of them, the others must not take it for dead.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "exec/processes.h"

namespace bubblescope {

/// While it lives, the other processes go on waiting for this one. Does nothing where there are
/// none.
class SignsOfLife {
 public:
  /// The processes are not copied.
  explicit SignsOfLife(const Processes& processes);
  ~SignsOfLife();
  SignsOfLife(const SignsOfLife&) = delete;
  SignsOfLife& operator=(const SignsOfLife&) = delete;

 private:
  void show();

  const Processes& processes_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread thread_;
};

}  // namespace bubblescope
