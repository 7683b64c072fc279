// A rank's activity around and inside its pipeline ops, as PyTorch's profiler recorded it.
// Annotations are cut down to their computation with it.
//
//   annotation PP:1F5   |----- waits -----|=== computes ===|- posts a send -|
//   gloo:recv         |--------------------|                                      ends the waiting
//   operators                              .|==| |=======|.                       the computing
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "traces/measured/chrome_events.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// The activities of one profile, to be queried by time.
class ProfileActivity {
 public:
  explicit ProfileActivity(const ChromeEvents& events);

  /// Whether kernels are linked to launches: a profile may contain kernels alone.
  bool has_kernels() const { return has_linked_kernels_; }

  /// Whether the rank sends messages but receives none, so that it waits for none.
  bool only_sends() const { return has_sends_ && !has_receives_; }

  /// When the device computes what any thread launched within `range` (the autograd engine has a
  /// thread of its own): the kernels of the stream that computes the most. What runs on other
  /// streams counts before them if they wait for it, and after them if it computes, or is a
  /// collective of the ranks that share the op. Reductions of gradients and gathers of parameters
  /// for later ops do neither. nullopt where nothing was launched.
  std::optional<TimeSpan> find_kernels(const TimeSpan& range) const;

  /// When the device begins to compute what is launched after a time of the host. nullopt where
  /// nothing is.
  std::optional<Nanos> find_next_start(Nanos launched_from) const;

  /// When the host launches the first activity within `range` that is not a message.
  std::optional<Nanos> find_first_launch(const TimeSpan& range) const;

  /// The end of the last collective that was launched within `range`, if the work that starts at
  /// `start` was waiting for it; else nullopt.
  std::optional<Nanos> find_awaited_collective(const TimeSpan& range, Nanos start) const;

  /// From the first to the last message kernel that was launched within `range`; those also run
  /// while they wait.
  std::optional<TimeSpan> find_message_kernels(const TimeSpan& range) const;

  /// Returns the time of all kernels that any thread launched within `range`, added up.
  Nanos sum_kernels(const TimeSpan& range) const;

  /// The computation within a range of a thread: from the end of the receive that it waited for to
  /// the first message that it posts afterwards. nullopt where the profile shows neither receives
  /// nor computation within the range.
  std::optional<TimeSpan> find_computation(const TimeSpan& range, std::uint32_t thread) const;

  /// Returns when the waiting before the computation at `first` ended: with the last receive that
  /// completed after `from`, where the profile shows one.
  Nanos find_waiting_end(Nanos from, Nanos first) const;

  /// Returns when a thread that waited until a time came to wait: with the end of the last call
  /// that it made from `from` on, such as one that posted a message.
  Nanos find_waiting_start(std::uint32_t thread, Nanos from, Nanos until) const;

  /// Splits a range that holds a forward and then a backward into the computation of each, without
  /// waiting. nullopt where the profile does not show it.
  std::optional<std::pair<TimeSpan, TimeSpan>> split_pair(const TimeSpan& range,
                                                          std::uint32_t thread) const;

 private:
  using Events = std::vector<ProfiledEvent>;  ///< by start

  /// The end of the last receive for which a thread waited between operators of an op: parameters
  /// may be gathered first. Such a receive was pending when the op began.
  std::optional<Nanos> find_wait_within(const TimeSpan& range, std::uint32_t thread) const;
  bool is_computing(std::uint32_t thread, Nanos from, Nanos time) const;

  /// The computation within a range whose first operator starts at `first`.
  TimeSpan cut_computation(const TimeSpan& range, std::uint32_t thread, Nanos first) const;

  /// The first call or gradient function of `thread` from `from` on, and before `before`.
  std::optional<Nanos> find_first_computation(std::uint32_t thread, Nanos from, Nanos before) const;
  std::optional<Nanos> find_first_gradient(Nanos from, Nanos before) const;
  std::optional<Nanos> find_last_computation_end(std::uint32_t thread, Nanos from,
                                                 Nanos before) const;

  /// Calls visit(launch, event) for everything that was launched within a range.
  template <class Visit>
  void for_each_launched(const TimeSpan& range, Visit visit) const;

  /// Returns what was launched within a range: messages, or everything else.
  std::vector<ProfiledEvent> find_launched(const TimeSpan& range, bool messages) const;
  Nanos find_end_before(std::uint32_t stream, Nanos start) const;

  std::vector<Events> computing_;    ///< [thread], calls and gradient functions
  std::vector<Events> posts_;        ///< [thread], calls that send or receive
  Events gradients_;                 ///< of all threads
  Events launches_;                  ///< of all threads
  Events receives_;                  ///< by end, those that are shown until they complete
  std::vector<Nanos> receive_ends_;  ///< theirs
  std::unordered_map<std::int64_t, Events> kernels_;  ///< [correlation id]
  std::vector<Events> streams_;                       ///< [thread], kernels
  bool has_linked_kernels_ = false;
  bool has_sends_ = false;
  bool has_receives_ = false;
};

}  // namespace bubblescope::traces
