// A step's dealings with the other processes on the host: signs of life, stops, when it begins, and
// what became of every rank in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/backend.h"
#include "exec/gpu/gpu_step.h"
#include "exec/nccl/process_link.h"
#include "exec/nccl/step_begin.h"
#include "exec/rank_part.h"
#include "exec/step_clock.h"

namespace bubblescope {

/// Tells the other processes to wait on, while this one does what takes long.
void show_life(ProcessLink& link);

class StepLink {
 public:
  /// `link` is not copied.
  StepLink(ProcessLink& link, const Limits& limits)
      : link_(link), limits_(limits), news_at_(read_monotonic_clock()) {}

  /// All processes begin their steps in the same order.
  void open_step();

  /// What has come since, while a step runs; tells the others that it goes on here. Throws Error
  /// that names a process that is gone.
  OutsideNews listen(std::size_t ended);

  /// The same while this thread waits for something else: throws Error when it need not wait any
  /// more, because of a stop or a failure elsewhere, Ctrl-C, or --timeout.
  void watch();

  /// Returns when the step begins, here as elsewhere; throws as watch() does.
  void await_begin();
  /// Empty where the step has not begun.
  const std::optional<StepBegin>& begin() const { return begin_; }

  /// Why the step was stopped, where it was not by a failure here.
  Stop stopped() const { return stopped_; }

  /// What every rank did; a rank that does not answer is said to. A stop here is told to the others
  /// first.
  std::vector<RankPart> gather(const RankPart& own);

  /// Everyone's bytes. Throws Error that names who does not answer.
  std::vector<Blob> share(Blob own);

  /// This process cannot go on, and the others need not wait for it.
  void tell_failure(const std::string& what);

 private:
  bool gives_up();
  Nanos grace(Nanos of_first) const;
  void expect_all() const;
  bool is_interrupted() const {
    return limits_.interrupted != nullptr && limits_.interrupted->load();
  }

  ProcessLink& link_;
  Limits limits_;
  std::uint32_t step_ = 0;
  std::optional<StepBegin> begin_;
  Stop stopped_ = Stop::kNone;
  Nanos news_at_;                  ///< when something was last heard
  std::optional<Nanos> deadline_;  ///< when answers are waited for no more, once there is a stop
  std::size_t shown_ = 0;          ///< what had ended when the others were last told
  Nanos shown_at_ = 0;
};

}  // namespace bubblescope
