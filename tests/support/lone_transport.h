// A transport without other processes: in a gather they give the same payload as this process, and
// they have always shut down.
#pragma once

#include <functional>

#include "exec/runtime/transport.h"

namespace bubblescope::tests {

class LoneTransport : public exec::Transport {
 public:
  explicit LoneTransport(const exec::RankInfo& self)
      : exec::Transport(self, /*is_relayed=*/false) {}

  std::function<void(exec::MessageTag tag)> at_send;  ///< may be empty

  void send(std::int32_t, exec::MessageTag tag, exec::Blob) override { note_sent(tag); }
  void send_all(exec::MessageTag tag, const exec::Blob&) override { note_sent(tag); }
  std::vector<exec::Message> poll(exec::MessageTag tag) override {
    if (tag != exec::MessageTag::kShutdown) return {};
    return {{0, {}}};
  }
  void wait(const exec::PollBackoff& backoff) const override { backoff.wait(); }

  exec::Gathered gather(exec::Blob own, const exec::ShouldAbort&) override {
    const auto count = static_cast<std::size_t>(self().count);
    return {std::vector<std::optional<exec::Blob>>(count, own), std::vector<bool>(count, false)};
  }

 private:
  void note_sent(exec::MessageTag tag) const {
    if (at_send) at_send(tag);
  }
};

}  // namespace bubblescope::tests
