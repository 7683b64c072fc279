// The events of a profile that are not ops but show what a rank did.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/ir/units.h"
#include "traces/measured/collective_names.h"

namespace bubblescope::traces {

/// The prefix of a step's annotation; the number of the step follows.
inline constexpr std::string_view kStepMark = "ProfilerStep#";

/// The kind of a PyTorch profiler event that is not an op of the pipeline but shows what a rank
/// did.
enum class Activity : std::uint8_t {
  kCall,            ///< an operator on the host that computes
  kAutograd,        ///< a gradient function, evaluated by the autograd engine
  kGradientFlow,    ///< the start of a call whose gradient is computed later; `number` is its id
  kGradientEnd,     ///< where that gradient is computed ("fwdbwd" leads to it)
  kSend,            ///< a send: the call, or from post to completion where the backend records that
  kReceive,         ///< a receive, likewise
  kPendingReceive,  ///< a receive from its post to its completion
  kStep,            ///< ProfilerStep#N; `number` is N
  kDataLoader,
  kOptimizer,
  kNamedLoading,  ///< an annotation of the training script that names loading data
  kNamedUpdate,   ///< likewise the optimizer, or clearing and clipping gradients
  kBarrier,
  kHostCollective,  ///< a collective of the host from its post to its completion
  kLaunch,          ///< a call that starts a kernel; `number` is the correlation id of both
  kCopyCall,        ///< one that copies or sets memory, which need not take a kernel
  kKernel,
  kTransfer,       ///< a copy on the device
  kCollective,     ///< on the device
  kMessageKernel,  ///< NCCL's send and receive
};

/// The ranks of a collective: those that share an op, such as tensor-parallel ranks, or others.
enum class CollectiveGroup : std::uint8_t { kUnknown, kOfOp, kOfReplicas };

/// The number of events without one. It is not an optional because profiles have millions of
/// events, which would take a quarter more memory.
inline constexpr std::int64_t kNoNumber = -1;

struct ProfiledEvent {
  Nanos start = 0;
  Nanos end = 0;
  std::int64_t number = kNoNumber;  ///< as its activity says, or the running number
  std::uint32_t thread = 0;         ///< of the device, a stream
  Activity activity = Activity::kCall;
  CollectiveKind collective = CollectiveKind::kOther;
  CollectiveGroup group = CollectiveGroup::kUnknown;
};

/// Classifies an event; nullopt where it does not matter to a pipeline.
std::optional<Activity> classify_activity(std::string_view category, std::string_view name);

/// Decides by the description of a process group ("mesh_tp", "DATA_PARALLEL_GROUP_WITH_CP").
CollectiveGroup classify_group(std::string_view description);

/// Whether data is loaded, as PyTorch or the training script names it.
bool loads_data(Activity activity);

/// Whether the activity is a kernel, a copy or a collective of a device.
bool is_on_device(Activity activity);

}  // namespace bubblescope::traces
