// The ops of one rank in a profile of PyTorch: what its annotations name (PP:2F0, Forward 3) or,
// where there are none (Schedule1F1B), what it does between messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/chrome_events.h"
#include "traces/measured/contradictions.h"
#include "traces/measured/message_kernels.h"
#include "traces/measured/named_slices.h"
#include "traces/measured/profile_activity.h"
#include "traces/measured/profile_place.h"
#include "traces/measured/step_marks.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// A profile of a rank, with what is known of it before its ops.
struct ProfiledRank {
  const std::string& file;
  const ChromeEvents& events;
  const ProfilePlace& place;
  StepMarks marks;
  ProfileActivity activity;
  std::vector<MessageKernel> message_kernels;
};

/// The ops of a profile, before messages between them are inferred.
struct ProfileOps {
  std::vector<ObservedOp> ops = {};
  ProfiledOps ranges = {};                ///< of the host
  std::optional<std::int32_t> rank = {};  ///< that annotations state
  bool has_messages = false;              ///< annotations name messages
  std::size_t outside_marks = 0;          ///< ops that are left out
  Remarks remarks = {};
};

/// Returns the ops without the waiting that annotations include, in the steps that the profile
/// marks. Throws Error where they leave steps, micro-batches or the times of a pair open.
ProfileOps find_annotated_ops(const ProfiledRank& profile, const std::vector<NamedSlice>& slices);

/// Returns the ops of the steps that the profile marks or, if it marks none, of all without a step;
/// none if it does not state its rank. Throws Error where they leave micro-batches open.
ProfileOps find_unannotated_ops(const ProfiledRank& profile);

/// The op at the time of the kernels that the host launched within `launched`; nullopt if there are
/// none.
std::optional<ObservedOp> observe_on_device(ObservedOp op, const TimeSpan& launched,
                                            const ProfileActivity& activity);

/// The message that an op of a thread waited for: it arrived when the waiting ended, or before the
/// thread came to wait. nullopt where the op has not waited, or needs none.
std::optional<ObservedOp> find_arrival(const ObservedOp& op, const TimeSpan& waiting,
                                       std::uint32_t thread, const ProfileActivity& activity);

}  // namespace bubblescope::traces
