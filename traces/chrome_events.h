// The slices of a Chrome trace that could be ops of a pipeline, read event by event: files of
// gigabytes hold mostly kernels and calls, of which only the number is kept.
//
//   [{"ph":"X","name":"forward-compute","pid":0,"tid":15,"ts":848671.674,"dur":138679.683,
//     "args":{"step":23,"model_chunk":0,"mb_id":1}}, ...]         or {"traceEvents":[...], ...}
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope {

/// A complete event ("X"), or a begin with its end ("B", "E").
struct ChromeSlice {
  std::string name;
  std::string category;
  std::uint32_t thread = 0;  ///< index into ChromeEvents::threads
  Nanos start = 0;
  Nanos end = 0;
  std::string op;  ///< args.op, which our own traces have
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> microbatch;  ///< args.mb_id
  std::optional<std::int64_t> chunk;       ///< args.model_chunk, or args.chunk
};

struct ChromeThread {
  std::string process;  ///< the pid, a number or a text
  std::string id;       ///< the tid
  std::string name;     ///< from the metadata; empty where there is none
};

/// What an event of PyTorch's profiler tells about a rank, where it is no op of the pipeline.
enum class Activity : std::uint8_t {
  kCall,            ///< an operator on the host that computes
  kAutograd,        ///< a gradient function, evaluated by the autograd engine
  kGradientFlow,    ///< the start of a call whose gradient is computed later ("fwdbwd")
  kSend,            ///< the call, or where the backend shows it, from post to completion
  kReceive,         ///< the same
  kPendingReceive,  ///< a receive from its post to its completion
  kStep,            ///< ProfilerStep#N; `number` is N
  kOutside,         ///< a data loader or an optimizer
  kBarrier,
  kLaunch,  ///< a call that starts a kernel; `number` is the correlation id of both
  kKernel,
  kMessageKernel,  ///< NCCL's send and receive
};

struct ProfiledEvent {
  Nanos start = 0;
  Nanos end = 0;
  std::int64_t number = 0;
  std::uint32_t thread = 0;
  Activity activity = Activity::kCall;
};

/// The activity of an event; nothing where it does not matter to a pipeline.
std::optional<Activity> activity_of(std::string_view category, std::string_view name);

/// A group of ranks of torch.distributed.
struct ProcessGroup {
  std::string description;  ///< "mesh_pp", "PIPELINE_MODEL_PARALLEL_GROUP"
  std::vector<std::int64_t> ranks;
};

struct ChromeEvents {
  std::vector<ChromeThread> threads;
  std::vector<ProfiledEvent> profiled;
  std::vector<ProcessGroup> groups;  ///< of PyTorch's distributedInfo
  std::optional<std::int64_t> world_size;
  std::string host;  ///< host_name of PyTorch's profiler
  std::vector<ChromeSlice> slices;
  std::vector<ChromeSlice> stepped;  ///< no ops, but args.step says to which step they belong
  std::map<std::string, std::string> other_data;  ///< the scalars of "otherData"
  bool is_kineto = false;                         ///< written by PyTorch's profiler
  std::optional<std::int64_t> distributed_rank;   ///< of PyTorch's distributedInfo
  std::map<std::string, std::int64_t> left_out;   ///< category -> slices that are no ops
  std::int64_t endless = 0;  ///< slices of a duration below zero, which are taken as of none
};

/// What to say of slices whose end is not known.
std::string endless_text(std::int64_t slices);

/// Whether a text looks like such a file, from its first bytes.
bool is_chrome_trace(std::string_view text);

/// Keeps the slices for which `names_op` says so, and those with args.op.
/// Throws Error with line and column for what is no json, and names the event with a bad time.
ChromeEvents read_chrome_events(std::string_view text, const std::string& file,
                                bool (*names_op)(std::string_view name));

/// "1204.5" microseconds, as json writes numbers, to the nearest nanosecond; nothing where that is
/// no number or does not fit.
std::optional<Nanos> parse_micros(std::string_view text);

/// "12 kernel, 3 slices without category": what a trace has instead of ops.
std::string left_out_text(const ChromeEvents& events);

}  // namespace bubblescope
