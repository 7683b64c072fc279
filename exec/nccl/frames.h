// What processes say to each other over a socket, as bytes: frames of a header and a payload.
//
//   "BBSC" | kind (4 bytes) | rank (4 bytes) | size (8 bytes) | payload
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "exec/runtime/blob.h"
#include "exec/runtime/transport.h"

namespace bubblescope::exec {

/// What a frame is: a part of the rendezvous, of a gather, or a message of a channel.
enum class FrameKind : std::uint32_t {
  kHello,      ///< a process says who it is
  kWelcome,    ///< all are there
  kRefusal,    ///< one may not join; a text says why
  kGather,     ///< one's bytes for everyone
  kGathered,   ///< everyone's
  kControl,    ///< Channel::kControl
  kClock,      ///< Channel::kClock
  kGone,       ///< a process that does not answer any more
  kShutdown,   ///< Channel::kShutdown
  kChallenge,  ///< rank 0 asks a caller to show that it has the secret
  kStep,       ///< Channel::kStep
  kCopy,       ///< Channel::kCopy
};
inline constexpr std::uint32_t kFrameKinds = 12;

FrameKind kind_of(MessageTag tag);

struct Frame {
  FrameKind kind = FrameKind::kHello;
  std::int32_t rank = 0;  ///< to rank 0: whom it is for; from rank 0: who says it
  Blob payload;
};

/// The rank of a frame that is for all others.
inline constexpr std::int32_t kAllRanks = -1;

Blob to_bytes(const Frame& frame);

/// The largest payload that a kind of frame has. Shares have no size of their own: it depends on
/// the Program, and FrameReader is told.
std::uint64_t max_payload_bytes(FrameKind kind);

/// The longest text of a failure or a refusal: whoever writes one cuts it.
inline constexpr std::size_t kMaxTextBytes = 8192;

/// Takes bytes as they come and gives whole frames. Memory grows with what has come, not with what
/// was announced.
class FrameReader {
 public:
  /// Frames with larger payloads are refused, and those larger than their kind can be.
  explicit FrameReader(std::uint64_t largest) : largest_(largest) {}

  void take(std::span<const std::byte> bytes);

  /// The next frame that has come whole. Throws Error (Fault::kMachine) where no frame of ours
  /// begins; nothing more can be read then.
  std::optional<Frame> next();

  void set_largest(std::uint64_t largest) { largest_ = largest; }

 private:
  std::uint64_t largest_;
  Blob bytes_;
  std::size_t begin_ = 0;  ///< of what was not given yet
};

}  // namespace bubblescope::exec
