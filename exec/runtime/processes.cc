// Gathers, heartbeats and the shutdown, outside of steps.
#include "exec/runtime/processes.h"

#include <cstdio>
#include <utility>

#include "exec/runtime/step_protocol.h"
#include "exec/runtime/wait_deadline.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

Processes::Processes(Transport& transport, const Limits& limits, std::function<void()> close)
    : transport_(&transport), limits_(limits), close_(std::move(close)) {}

Processes::~Processes() {
  try {
    shutdown();
  } catch (const Error&) {
    // A caller that needs the error calls shutdown() itself.
  }
}

std::vector<Blob> Processes::gather(Blob own) const {
  if (transport_ != nullptr) return StepProtocol(*transport_, limits_).gather(std::move(own));
  std::vector<Blob> all;
  all.push_back(std::move(own));
  return all;
}

void Processes::send_heartbeat() const {
  if (transport_ != nullptr) bubblescope::exec::send_heartbeat(*transport_);
}

void Processes::shutdown() {
  if (transport_ == nullptr || std::exchange(is_shut_down_, true)) return;
  std::string lost;
  try {
    lost = await_shutdown(*transport_, limits_);
  } catch (const Error& error) {
    lost = error.what();
  }
  std::fflush(nullptr);
  if (close_) close_();
  if (!lost.empty()) throw Error(Fault::kMachine, lost);
}

std::string await_shutdown(Transport& transport, const Limits& limits) {
  WaitDeadline waiting(limits);
  const std::int32_t here = transport.self().rank;
  if (transport.coordinator() == here) {
    transport.send_all(MessageTag::kShutdown, {});
    transport.flush([&waiting] { return waiting.has_passed(); });
    return "";
  }
  for (const PollBackoff backoff; transport.poll(MessageTag::kShutdown).empty();
       transport.wait(backoff)) {
    if (transport.is_relayed() && transport.is_gone(0))
      return "rank 0 is gone: its process has died before all was done";
    if (transport.coordinator() == here) return "";
    if (!transport.poll(MessageTag::kControl).empty()) waiting.extend();
    if (!waiting.has_passed()) continue;
    if (limits.is_interrupted())
      return "";  // the coordinator reports the interrupt and may still be writing
    return "rank " + std::to_string(transport.coordinator()) +
           " does not answer: its process has died or hangs";
  }
  return "";
}

}  // namespace bubblescope::exec
