// Lowering: a Schedule becomes a Program, or the cycle in which it would wait for ever.
#pragma once

#include <array>
#include <cstdint>
#include <variant>
#include <vector>

#include "sim/ir/named.h"
#include "sim/ir/p2p_mode.h"
#include "sim/ir/program.h"
#include "sim/ir/update.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope {

/// How the two ops of an overlapped forward-backward pair start and end. All are edges only.
enum class Overlap : std::uint8_t {
  kSerial,  ///< F, then B when its own inputs are there
  kAtomic,  ///< F also waits for B's inputs; F's result is there when F ends
  kFused,   ///< atomic, and F's result is there only when B ends
};

inline constexpr std::array<Named<Overlap>, 3> kOverlaps{{
    {Overlap::kSerial, "serial"},
    {Overlap::kAtomic, "atomic"},
    {Overlap::kFused, "fused"},
}};

/// Where receives are posted.
enum class Lowering : std::uint8_t {
  kAsap,      ///< when the sender is placed (post_messages)
  kDeferred,  ///< just before the consumer, with PyTorch's rule of ranks (defer_receives)
};
inline constexpr std::array<Named<Lowering>, 2> kLowerings{{
    {Lowering::kAsap, "asap"},
    {Lowering::kDeferred, "deferred"},
}};

struct LowerOptions {
  Overlap overlap = Overlap::kAtomic;
  P2pMode mode = P2pMode::kDataflow;
  std::int32_t eager_slots = 1;  ///< only for kEager; 0 is kRendezvous
  Lowering posting = Lowering::kAsap;
  UpdateOptions update = {};
  /// Neighbouring ranks whose copies to the host take turns on one link; as many take turns back.
  std::int32_t ranks_per_host_link = 1;
};

/// Adds the messages that the data flow asks for: one per activation or gradient that crosses
/// ranks, leaving when its producer ends; the edges of copies, which run beside the compute ops;
/// then, in every mode but dataflow, the posts and waits of the posted lists; then the collectives
/// of `posted`, and the reductions and optimizer steps of `update`. Throws Error when an op
/// waits for one that no rank runs, or a message was not posted at both ends: validate() tells
/// that, and more, without throwing.
std::variant<Program, Deadlock> lower(const ValidSchedule& schedule,
                                      const LowerOptions& options = {});

/// The posted lists that lower() follows: those of the schedule where it has messages, else those
/// of the given lowering.
std::vector<RankOrder> posted_lists(const ValidSchedule& schedule, Lowering posting);

}  // namespace bubblescope
