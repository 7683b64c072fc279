// Judges whether the threads of a process that run forwards are ranks, or parts of one.
//
//   rank 0  |0F0||0F1|     rank 1  |1F0||1F1|     ranks: stages of their own
//   fwd a   |0F0|  |0F2|   fwd b     |0F1|        parts: they share the micro-batches of a stage
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traces/measured/chrome_events.h"
#include "traces/measured/chrome_ranks.h"
#include "traces/measured/rank_words.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// A forward's micro-batch and step; -1 where they are unknown.
using ForwardKey = std::pair<std::int64_t, std::int64_t>;

/// The compute ops of one thread.
struct ThreadOps {
  std::set<std::int32_t> stages;                          ///< of its forwards
  std::map<std::int64_t, std::set<ForwardKey>> forwards;  ///< by stage, or below 0 by chunk
  std::set<std::int64_t> chunks;  ///< of its forwards, where they state them
  std::optional<TimeSpan> span;
};

/// By thread.
using ThreadsOfProcess = std::map<std::uint32_t, ThreadOps>;

/// By pid.
using ProcessThreads = std::map<std::string, ThreadsOfProcess>;

ProcessThreads find_process_threads(const ChromeEvents& events, const std::vector<ChromeOp>& ops);

/// Whether the threads of a process are ranks: no, by their names, by their forwards, or unclear.
enum class ThreadSplit : std::uint8_t { kNone, kNamed, kSeen, kUnclear };

/// `is_only_process`: no other process runs ops, so that this one need not be a rank.
ThreadSplit judge_threads(const ChromeEvents& events, const ThreadsOfProcess& threads,
                          bool is_only_process);

/// Whether several threads run forwards, which are not all named after one rank.
bool has_unnamed_parts(const ChromeEvents& events, const ThreadsOfProcess& threads);

std::vector<std::uint32_t> list_forward_threads(const ThreadsOfProcess& threads);

/// The name of a thread; its number where it has none.
const std::string& label_of(const ChromeEvents& events, std::uint32_t thread);

/// The number in a thread's name, if that is one of a rank or a device.
std::optional<NamedNumber> find_named_rank(const ChromeEvents& events, std::uint32_t thread);

}  // namespace bubblescope::traces
