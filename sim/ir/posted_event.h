// The events of posted lists: instructions of the dataflow Program, and the posts and waits at the
// two ends of its messages. Posts and waits are identified by their message and stored nowhere.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/ir/posted_steps.h"

namespace bubblescope::inline sim {

struct PostedEvent {
  enum class Part : std::uint8_t { kOwn, kSendPost, kSendWait, kReceivePost, kReceiveWait };

  InstructionId id = 0;  ///< in the dataflow Program: the instruction itself, or the message
  Part part = Part::kOwn;

  auto operator<=>(const PostedEvent&) const = default;
  bool is_post() const { return part == Part::kSendPost || part == Part::kReceivePost; }
  bool is_at_sender() const { return part == Part::kSendPost || part == Part::kSendWait; }
};

inline PostedEvent post_of(const PostedStep& step) {
  using Part = PostedEvent::Part;
  return {step.id, is_send(step.op.kind) ? Part::kSendPost : Part::kReceivePost};
}
inline PostedEvent wait_of(const PostedStep& step) {
  using Part = PostedEvent::Part;
  return {step.id, is_send(step.op.kind) ? Part::kSendWait : Part::kReceiveWait};
}

/// Records which posts and waits are done.
class DoneEvents {
 public:
  explicit DoneEvents(std::size_t dataflow_size) : done_(kParts * dataflow_size, false) {}

  bool operator()(PostedEvent event) const { return done_[index(event)]; }
  void note(PostedEvent event) { done_[index(event)] = true; }

 private:
  static constexpr std::size_t kParts = 4;
  static std::size_t index(PostedEvent event) {
    return kParts * event.id + static_cast<std::size_t>(event.part) - 1;
  }

  std::vector<bool> done_;
};

}  // namespace bubblescope::inline sim
