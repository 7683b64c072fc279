// What a rank did around and inside its pipeline ops, as PyTorch's profiler saw it: the evidence by
// which an annotation is cut down to its computing.
//
//   annotation PP:1F5   |----- waits -----|=== computes ===|- posts a send -|
//   gloo:recv         |--------------------|                                      ends the waiting
//   operators                              .|==| |=======|.                       the computing
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "traces/chrome_events.h"

namespace bubblescope {

struct TimeSpan {
  Nanos start = 0;
  Nanos end = 0;
};

/// The activities of one profile, ready to be asked about stretches of time.
class ProfileActivity {
 public:
  explicit ProfileActivity(const ChromeEvents& events);

  /// Whether launches lead to kernels: a profile may hold kernels alone.
  bool has_kernels() const { return has_linked_kernels_; }

  /// From the first to the last kernel that was launched within `range` by any thread: the autograd
  /// engine has a thread of its own. Messages' kernels are asked for by themselves, because they
  /// also run while they wait. Nothing where none was launched.
  std::optional<TimeSpan> kernels_within(const TimeSpan& range, bool messages) const;

  /// The computing within a range of thread `thread`: from the end of the receive that it waited
  /// for, to the first message that it posts afterwards. Nothing where the profile shows neither
  /// receives nor anything that computes within it.
  std::optional<TimeSpan> computing_within(const TimeSpan& range, std::uint32_t thread) const;

  /// When the waiting between `from` and the first computing at `first` ended: with the last
  /// receive that completed between them, where the profile shows that.
  Nanos waited_until(Nanos from, Nanos first) const;

  /// Where the computing of a forward ends and that of the backward after it begins, in a range
  /// that holds both; each without its waiting. Nothing where the profile does not show it.
  std::optional<std::pair<TimeSpan, TimeSpan>> split_pair(const TimeSpan& range,
                                                          std::uint32_t thread) const;

 private:
  using Events = std::vector<ProfiledEvent>;  ///< by start

  /// The first call or gradient function of `thread` from `from` on, and before `before`.
  std::optional<Nanos> first_computing(std::uint32_t thread, Nanos from, Nanos before) const;
  std::optional<Nanos> first_gradient(Nanos from, Nanos before) const;
  std::optional<Nanos> last_computing_end(std::uint32_t thread, Nanos from, Nanos before) const;

  std::vector<Events> computing_;    ///< [thread], calls and gradient functions
  std::vector<Events> posts_;        ///< [thread], calls that send or receive
  Events gradients_;                 ///< of all threads
  Events launches_;                  ///< of all threads
  std::vector<Nanos> receive_ends_;  ///< sorted, of receives that are shown until they complete
  struct Kernel {
    TimeSpan span;
    bool is_message = false;
  };
  std::unordered_map<std::int64_t, std::vector<Kernel>> kernels_;  ///< [correlation id]
  bool has_linked_kernels_ = false;
};

}  // namespace bubblescope
