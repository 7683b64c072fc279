// Lowering: a Schedule becomes a Program, or the cycle in which it would wait for ever.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/update.h"

namespace bubblescope {

/// How the two ops of an overlapped forward-backward pair start and end. All are edges only.
enum class Overlap : std::uint8_t {
  kSerial,  ///< F, then B when its own inputs are there
  kAtomic,  ///< F also waits for B's inputs; F's result is there when F ends
  kFused,   ///< atomic, and F's result is there only when B ends
};

/// What posted sends and receives do; docs/messages.md tells each rule.
enum class P2pMode : std::uint8_t {
  kDataflow,        ///< nothing is posted: a message leaves when its producer ends
  kFifo,            ///< one communication queue per rank, unlimited buffers
  kEager,           ///< fifo with a number of slots per directed channel
  kRendezvous,      ///< eager without slots
  kHostRendezvous,  ///< sends and receives block the rank itself
  kHostSend,        ///< sends block the rank itself, receives are only posted
  kBatched,         ///< neighbours in the rank's list are one group that blocks it
};

struct P2pModeName {
  P2pMode mode;
  std::string_view name;  ///< "eager" is written with its slots: "eager:2"
  std::string_view summary;
};

/// Every mode, in the order of the enum.
inline constexpr std::array<P2pModeName, 7> kP2pModes{{
    {P2pMode::kDataflow, "dataflow", "a message leaves when its producer ends"},
    {P2pMode::kFifo, "fifo", "one in-order communication queue per rank, unlimited buffers"},
    {P2pMode::kEager, "eager", "fifo with K slots per pair of source and destination"},
    {P2pMode::kRendezvous, "rendezvous", "fifo, and a send waits for its receive"},
    {P2pMode::kHostRendezvous, "host-rendezvous", "sends and receives block the rank itself"},
    {P2pMode::kHostSend, "host-send", "sends block the rank itself, receives are only posted"},
    {P2pMode::kBatched, "batched", "neighbouring sends and receives block the rank as one group"},
}};

/// Where receives are posted.
enum class Lowering : std::uint8_t {
  kAsap,      ///< when the sender is placed (post_messages)
  kDeferred,  ///< just before the consumer, with PyTorch's rule of ranks (defer_receives)
};

struct LowerOptions {
  Overlap overlap = Overlap::kAtomic;
  P2pMode mode = P2pMode::kDataflow;
  std::int32_t eager_slots = 1;  ///< only for kEager; 0 is kRendezvous
  Lowering posting = Lowering::kAsap;
  UpdateOptions update = {};
  /// Neighbouring ranks whose copies to the host take turns on one link; as many take turns back.
  std::int32_t ranks_per_host_link = 1;
};

/// "eager:2", "host-send": a mode as --p2p-mode takes it.
std::string to_string(P2pMode mode, std::int32_t eager_slots);

/// Adds the messages that the data flow asks for: one per activation or gradient that crosses
/// ranks, leaving when its producer ends; the edges of copies, which run beside the compute ops;
/// then, in every mode but dataflow, the posts and waits of the posted lists; then the collectives
/// of `posted`, and the reductions and optimizer steps of `update`. Throws Error when an op
/// waits for one that no rank runs, or a message was not posted at both ends: validate() tells
/// that, and more, without throwing.
std::variant<Program, Deadlock> lower(const Schedule& schedule, const LowerOptions& options = {});

/// The posted lists that lower() follows: those of the schedule where it has messages, else those
/// of the given lowering.
std::vector<RankOrder> posted_lists(const Schedule& schedule, Lowering posting);

}  // namespace bubblescope
