// Converts frames to bytes and back.
#include "exec/nccl/frames.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

struct Header {
  char mark[4] = {'B', 'B', 'S', 'C'};
  std::uint32_t kind = 0;
  std::int32_t rank = 0;
  std::uint32_t low = 0;  ///< the size, in two halves, so that the header has no padding
  std::uint32_t high = 0;
};
static_assert(sizeof(Header) == 20);

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Fault::kMachine, "the received data is not a bubblescope frame: " + what);
}

}  // namespace

FrameKind kind_of(MessageTag tag) {
  switch (tag) {
    case MessageTag::kStep: return FrameKind::kStep;
    case MessageTag::kCopy: return FrameKind::kCopy;
    case MessageTag::kControl: return FrameKind::kControl;
    case MessageTag::kClock: return FrameKind::kClock;
    case MessageTag::kGather: return FrameKind::kGather;
    case MessageTag::kShutdown: break;
  }
  return FrameKind::kShutdown;
}

std::uint64_t max_payload_bytes(FrameKind kind) {
  switch (kind) {
    case FrameKind::kChallenge:
    case FrameKind::kHello:
    case FrameKind::kWelcome: return 256;
    case FrameKind::kRefusal:
    case FrameKind::kControl: return 2 * kMaxFailureText;
    case FrameKind::kClock: return sizeof(std::int64_t);
    case FrameKind::kGone: return sizeof(std::int32_t);
    case FrameKind::kShutdown: return 0;
    case FrameKind::kGather:
    case FrameKind::kGathered:
    case FrameKind::kStep:
    case FrameKind::kCopy: break;
  }
  return std::numeric_limits<std::uint64_t>::max();
}

Blob to_bytes(const Frame& frame) {
  Header header;
  header.kind = static_cast<std::uint32_t>(frame.kind);
  header.rank = frame.rank;
  header.low = static_cast<std::uint32_t>(frame.payload.size());
  header.high = static_cast<std::uint32_t>(std::uint64_t{frame.payload.size()} >> 32);
  Blob bytes(sizeof header + frame.payload.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!frame.payload.empty())
    std::memcpy(bytes.data() + sizeof header, frame.payload.data(), frame.payload.size());
  return bytes;
}

void FrameReader::take(std::span<const std::byte> bytes) {
  if (begin_ > bytes_.size() / 2) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_));
    begin_ = 0;
  }
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

std::optional<Frame> FrameReader::next() {
  const std::size_t there = bytes_.size() - begin_;
  if (there < sizeof(Header)) return std::nullopt;
  Header header;
  std::memcpy(&header, bytes_.data() + begin_, sizeof header);
  if (std::memcmp(header.mark, Header().mark, sizeof header.mark) != 0)
    refuse("its magic number is wrong");
  if (header.kind >= kFrameKinds) refuse("kind " + std::to_string(header.kind) + " is not known");
  if (header.rank < kAllRanks) refuse("rank " + std::to_string(header.rank) + " is impossible");
  const std::uint64_t size = (std::uint64_t{header.high} << 32) | header.low;
  const std::uint64_t largest =
      std::min(largest_, max_payload_bytes(static_cast<FrameKind>(header.kind)));
  if (size > largest)
    refuse("it announces " + counted(size, "byte") + ", of at most " + std::to_string(largest));
  if (there - sizeof header < size) return std::nullopt;
  const auto* const payload = bytes_.data() + begin_ + sizeof header;
  Frame frame{static_cast<FrameKind>(header.kind), header.rank, Blob(payload, payload + size)};
  begin_ += sizeof header + static_cast<std::size_t>(size);
  return frame;
}

}  // namespace bubblescope::exec
