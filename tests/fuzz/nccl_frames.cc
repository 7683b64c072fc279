// Fuzzes what comes over the sockets of the backend nccl: in however many pieces, it is refused, or
// the frames are those that their writer makes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "exec/nccl/frames.h"
#include "sim/ir/error.h"

namespace {

using namespace bubblescope;

constexpr std::uint64_t kMaxPayload = 4096;

/// The frames that came before the end or the first fault.
std::vector<exec::Frame> read(std::span<const std::byte> bytes, std::size_t piece) {
  std::vector<exec::Frame> frames;
  exec::FrameReader reader(kMaxPayload);
  try {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.take(bytes.subspan(at, std::min(piece, bytes.size() - at)));
      while (std::optional<exec::Frame> frame = reader.next()) frames.push_back(std::move(*frame));
    }
  } catch (const Error&) {  // refused
  }
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const std::vector<exec::Frame> frames = read(bytes, 7);
  if (frames.size() != read(bytes, 4096).size()) std::abort();
  std::size_t begin = 0;
  for (const exec::Frame& frame : frames) {
    if (frame.payload.size() > std::min(kMaxPayload, exec::max_payload_bytes(frame.kind)))
      std::abort();
    const exec::Blob written = exec::to_bytes(frame);
    if (std::memcmp(written.data(), data + begin, written.size()) != 0) std::abort();
    begin += written.size();
  }
  return 0;
}
