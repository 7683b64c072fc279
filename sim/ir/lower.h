// Lowering: turns a Schedule into a Program, or returns the cycle of waits in which it deadlocks.
//
//   Schedule, rank 0: 0F0 0B0    rank 1: 1F0 1B0
//   Program           0F0 -> 0SEND_F0 -> 1F0 -> 1B0 -> 1SEND_B0 -> 0B0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "sim/ir/named.h"
#include "sim/ir/p2p_mode.h"
#include "sim/ir/program.h"
#include "sim/ir/update.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

/// The way in which the two ops of an overlapped forward-backward pair start and end. All variants
/// only add dependencies.
enum class Overlap : std::uint8_t {
  kSerial,  ///< F, then B once its own inputs have arrived
  kAtomic,  ///< F also waits for B's inputs; F's result is available when F ends
  kFused,   ///< atomic, and F's result is available only when B ends
};

inline constexpr std::array<Named<Overlap>, 3> kOverlaps{{
    {Overlap::kSerial, "serial"},
    {Overlap::kAtomic, "atomic"},
    {Overlap::kFused, "fused"},
}};

/// Where receives are posted.
enum class ReceivePosting : std::uint8_t {
  kAsap,      ///< as soon as the sender is placed (post_messages)
  kDeferred,  ///< just before the consumer, with PyTorch's rule for ranks (defer_receives)
};
inline constexpr std::array<Named<ReceivePosting>, 2> kReceivePostings{{
    {ReceivePosting::kAsap, "asap"},
    {ReceivePosting::kDeferred, "deferred"},
}};

struct LowerOptions {
  Overlap overlap = Overlap::kAtomic;
  P2pMode mode = P2pMode::kDataflow;
  std::int32_t eager_slots = 1;  ///< only for kEager; 0 is kRendezvous
  ReceivePosting posting = ReceivePosting::kAsap;
  UpdateOptions update = {};
  /// Adjacent ranks that share one link to the host, one copy at a time in each direction.
  std::int32_t ranks_per_host_link = 1;
  /// The sends that a rank may have outstanding (send_budget.h); nullopt: ranks do not wait for
  /// their sends, and the Program does not say when outputs are no longer held.
  std::optional<std::int32_t> send_budget = {};
  /// Whether an UNSHARD waits for the compute op before it in its list; else it starts as soon as
  /// its lane is free.
  bool gathers_in_place = false;

  /// Whether ranks post messages and wait for them; else a message leaves when its producer ends.
  bool waits_for_messages() const { return mode != P2pMode::kDataflow || send_budget; }
};

/// Adds to the compute ops: the messages that the data flow requires, one per activation or
/// gradient that crosses ranks, sent when its producer ends; the dependencies of copies, which run
/// beside the compute ops; in every mode but dataflow, the posts and waits of the posted lists;
/// with a send budget, the waits for sends; the collectives of `posted`; and the reductions and
/// optimizer steps of `update`.
///
/// Throws Error when an op waits for one that no rank runs, when a message is not posted at both
/// ends, or when a rank cannot keep its send budget. validate() reports these problems, and more,
/// without throwing.
std::variant<Program, Deadlock> lower(const ValidSchedule& schedule,
                                      const LowerOptions& options = {});

/// The posted lists that lower() follows: the schedule's own if it has messages, else those of the
/// given posting.
std::vector<RankOrder> make_posted_lists(const ValidSchedule& schedule, ReceivePosting posting);

}  // namespace bubblescope::inline sim
