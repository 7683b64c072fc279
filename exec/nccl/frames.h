// The wire format between processes: a frame is a header and a payload.
//
//   "BBSC" | kind (4 bytes) | rank (4 bytes) | size (8 bytes) | payload
//
// Frames of a rendezvous are exchanged on a new connection; then frames carry the messages and
// gathers of a SocketTransport.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "exec/runtime/blob.h"
#include "exec/runtime/transport.h"

namespace bubblescope::exec {

/// The purpose of a frame.
enum class FrameKind : std::uint32_t {
  kHello,      ///< a process reports its rank and proves that it has the secret
  kWelcome,    ///< all processes have connected
  kRefusal,    ///< a process may not join; the payload is the reason
  kGather,     ///< a rank's payload of a gather, for rank 0
  kGathered,   ///< the payloads of all ranks, from rank 0
  kControl,    ///< MessageTag::kControl
  kClock,      ///< MessageTag::kClock
  kGone,       ///< the payload is a rank that is gone
  kShutdown,   ///< MessageTag::kShutdown
  kChallenge,  ///< rank 0 asks a process to prove that it has the secret
  kStep,       ///< MessageTag::kStep
  kCopy,       ///< MessageTag::kCopy
};
inline constexpr std::uint32_t kFrameKinds = 12;

FrameKind kind_of(MessageTag tag);

struct Frame {
  FrameKind kind = FrameKind::kHello;
  std::int32_t rank = 0;  ///< the receiver if sent to rank 0, the sender if sent by rank 0
  Blob payload;
};

/// The receiver of a frame for all other ranks.
inline constexpr std::int32_t kAllRanks = -1;

Blob to_bytes(const Frame& frame);

/// The maximum payload of a kind of frame. For gathers it depends on the Program, and FrameReader's
/// own limit applies.
std::uint64_t max_payload_bytes(FrameKind kind);

/// Splits a stream of bytes into frames. Its memory grows with the bytes received, not with the
/// announced sizes.
class FrameReader {
 public:
  /// Payloads larger than `largest`, or than their kind allows, are refused.
  explicit FrameReader(std::uint64_t largest) : largest_(largest) {}

  void take(std::span<const std::byte> bytes);

  /// The next complete frame. Throws Error (Fault::kMachine) if the bytes are not a frame; nothing
  /// more can be read then.
  std::optional<Frame> next();

  void set_largest(std::uint64_t largest) { largest_ = largest; }

 private:
  std::uint64_t largest_;
  Blob bytes_;
  std::size_t begin_ = 0;  ///< the first byte that next() has not returned
};

}  // namespace bubblescope::exec
