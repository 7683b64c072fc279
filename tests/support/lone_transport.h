// A process that tests see alone: the others give to a gather what it gives itself, and are done.
#pragma once

#include <functional>
#include <utility>

#include "exec/runtime/transport.h"

namespace bubblescope {

class LoneTransport : public Transport {
 public:
  explicit LoneTransport(const RankInfo& self) : Transport(self, /*is_relayed=*/false) {}

  std::function<void(Channel channel)> at_send;  ///< may be empty

  void send(std::int32_t, Channel channel, Blob) override { note_sent(channel); }
  void send_all(Channel channel, const Blob&) override { note_sent(channel); }
  std::vector<Message> poll(Channel channel) override {
    if (channel != Channel::kShutdown) return {};
    return {{0, {}}};
  }
  void wait(const Patience& patience) const override { patience.wait(); }

  Gathered gather(Blob own, const GivesUp&) override {
    const auto count = static_cast<std::size_t>(self().count);
    return {std::vector<std::optional<Blob>>(count, own), std::vector<bool>(count, false)};
  }

 private:
  void note_sent(Channel channel) const {
    if (at_send) at_send(channel);
  }
};

}  // namespace bubblescope
