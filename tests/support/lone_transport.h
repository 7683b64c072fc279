// A process that tests see alone: the others give to a gather what it gives itself, and are done.
#pragma once

#include <functional>
#include <utility>

#include "exec/runtime/transport.h"

namespace bubblescope {

class LoneTransport : public Transport {
 public:
  explicit LoneTransport(const RankInfo& self) : Transport(self, /*is_relayed=*/false) {}

  std::function<void(MessageTag tag)> at_send;  ///< may be empty

  void send(std::int32_t, MessageTag tag, Blob) override { note_sent(tag); }
  void send_all(MessageTag tag, const Blob&) override { note_sent(tag); }
  std::vector<Message> poll(MessageTag tag) override {
    if (tag != MessageTag::kShutdown) return {};
    return {{0, {}}};
  }
  void wait(const PollBackoff& backoff) const override { backoff.wait(); }

  Gathered gather(Blob own, const ShouldAbort&) override {
    const auto count = static_cast<std::size_t>(self().count);
    return {std::vector<std::optional<Blob>>(count, own), std::vector<bool>(count, false)};
  }

 private:
  void note_sent(MessageTag tag) const {
    if (at_send) at_send(tag);
  }
};

}  // namespace bubblescope
