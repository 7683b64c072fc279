// P2P modes: how posted sends and receives behave; docs/messages.md states each rule.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/ir/named.h"

namespace bubblescope::inline sim {

enum class P2pMode : std::uint8_t {
  kDataflow,        ///< nothing is posted: a message leaves when its producer ends
  kFifo,            ///< one communication queue per rank, unlimited buffers
  kEager,           ///< fifo with a limited number of slots per directed channel
  kRendezvous,      ///< eager without slots
  kHostRendezvous,  ///< sends and receives block the rank itself
  kHostSend,        ///< sends block the rank itself, receives are only posted
  kBatched,         ///< adjacent messages in the rank's list form one group that blocks it
};

/// Every mode, in the order of the enum; "eager" is written with its slots: "eager:2".
inline constexpr std::array<Named<P2pMode>, 7> kP2pModes{{
    {P2pMode::kDataflow, "dataflow", "a message leaves when its producer ends"},
    {P2pMode::kFifo, "fifo", "one in-order communication queue per rank, unlimited buffers"},
    {P2pMode::kEager, "eager", "fifo with K slots per pair of source and destination"},
    {P2pMode::kRendezvous, "rendezvous", "fifo, and a send waits for its receive"},
    {P2pMode::kHostRendezvous, "host-rendezvous", "sends and receives block the rank itself"},
    {P2pMode::kHostSend, "host-send", "sends block the rank itself, receives are only posted"},
    {P2pMode::kBatched, "batched", "adjacent sends and receives block the rank as one group"},
}};

/// A mode with its slots.
struct P2pRule {
  P2pMode mode = P2pMode::kDataflow;
  std::int32_t eager_slots = 1;  ///< only for kEager; 0 is kRendezvous
};

/// "eager:2", "host-send": the form in which users and files name a mode.
std::string to_string(P2pMode mode, std::int32_t eager_slots);

/// Parses the output of to_string(); empty for anything else.
std::optional<P2pRule> parse_p2p_rule(std::string_view text);

}  // namespace bubblescope::inline sim
